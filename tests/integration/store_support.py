"""What the store's tests with real clients share: test server, Pythons with torch, raw clients."""

import atexit
import contextlib
import functools
import os
import pathlib
import socket
import struct
import subprocess
import tempfile
import textwrap
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("DDPRUN_BIN_DIR", ROOT / "build" / "dev" / "bin"))
SAFETY_NET_S = 120  # Importing torch on a busy machine takes long; everything else is quick.

HELLO = bytes([0x00, 0xCE, 0xF7, 0x85, 0x3C])
PING = bytes([0x0D, 1, 0, 0, 0])
PONG = bytes([1, 0, 0, 0])

NEW_TORCH = os.environ.get("DDPRUN_TORCH_PYTHON", str(ROOT / ".venv" / "bin" / "python"))
OLD_TORCH = "/usr/bin/python3"  # Debian 12: torch 1.13


def u64(number):
    return struct.pack("<Q", number)


def i64(number):
    return struct.pack("<q", number)


def text(value):
    return u64(len(value)) + value


def listed(*keys):
    return u64(len(keys)) + b"".join(text(key) for key in keys)


@functools.lru_cache(maxsize=None)
def _torch_version(python):
    if not os.path.exists(python):
        return None
    command = [python, "-c", "import torch, torch.distributed as d; d.TCPStore; "
                             "print(torch.__version__)"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def need_torch(python):
    """Skips the test, with the reason, if this Python has no torch with TCPStore."""
    if _torch_version(python) is None:
        pytest.skip(f"{python} cannot import torch.distributed with TCPStore")
    return python


class StoreServer:
    """A running test_store_server. Use it in a with statement."""

    def __init__(self, *options):
        self.options = options

    def __enter__(self):
        self.process = subprocess.Popen(
            [BIN / "test_store_server", *self.options], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline().split()
        assert len(line) == 2, self.process.stderr.read()
        self.port = int(line[1])
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()

    def stop(self):
        """Ends the server as its owner would; returns (clients that joined, log lines)."""
        out, err = self.process.communicate(timeout=10)
        assert self.process.returncode == 0, err
        return int(out.split()[1]), err.splitlines()

    def connect(self, host="127.0.0.1"):
        return connect(self.port, host)

    def join(self):
        """A raw client that has been answered."""
        client = self.connect()
        client.sendall(HELLO + PING)
        assert receive(client, 4) == PONG
        return client


def connect(port, host="127.0.0.1"):
    client = socket.create_connection((host, port), timeout=10)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def receive(client, size):
    data = b""
    while len(data) < size:
        piece = client.recv(size - len(data))
        if not piece:
            break
        data += piece
    return data


class Proxy:
    """Records what clients send, per connection, in `streams`. Use it in a with statement."""

    def __init__(self, target_port):
        self.target_port = target_port

    def __enter__(self):
        self.streams = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.pumps = []
        self.thread.start()
        return self

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = connect(self.target_port)
            server.settimeout(None)
            stream = bytearray()
            self.streams.append(stream)
            for source, sink, record in ((client, server, stream), (server, client, None)):
                sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                pump = threading.Thread(target=self._pump, args=(source, sink, record), daemon=True)
                pump.start()
                self.pumps.append(pump)

    @staticmethod
    def _pump(source, sink, record):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if record is not None:
                    record += data
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for pump in self.pumps:
            pump.join(10)


NAMES_OF_C = {0: ("VALIDATE", "u"), 1: ("SET", "ss"), 2: ("COMPARE_SET", "sss"), 3: ("GET", "s"),
              4: ("ADD", "sn"), 5: ("CHECK", "l"), 6: ("WAIT", "l"), 7: ("GETNUMKEYS", ""),
              8: ("DELETE_KEY", "s"), 9: ("APPEND", "ss"), 10: ("MULTI_GET", "l"),
              11: ("MULTI_SET", "p"), 12: ("CANCEL_WAIT", ""), 13: ("PING", "u"),
              14: ("QUEUE_PUSH", "ss"), 15: ("QUEUE_POP", "s"), 16: ("QUEUE_LEN", "s"),
              17: ("LIST_KEYS", ""), 18: ("BARRIER", "sn")}


def operations_of(stream):
    """The names of the operations in a recorded dialect C stream, in order."""
    names, at = [], 0

    def skip_string():
        nonlocal at
        at += 8 + struct.unpack_from("<Q", stream, at)[0]

    while at < len(stream):
        name, fields = NAMES_OF_C[stream[at]]
        at += 1
        names.append(name)
        for field in fields:
            if field in "lp":
                count = struct.unpack_from("<Q", stream, at)[0]
                at += 8
                for _ in range(count * (2 if field == "p" else 1)):
                    skip_string()
            elif field == "s":
                skip_string()
            else:
                at += 4 if field == "u" else 8
    assert at == len(stream)
    return names


# torch's clients ask the resolver for the name of the address they connect to. Where we may, they
# get a hosts file of their own that knows it, so that these tests do not wait for a resolver.
_HOSTS = "127.0.0.1 localhost {0}\n::1 localhost\n::ffff:127.0.0.1 localhost\n"


@functools.lru_cache(maxsize=None)
def _own_hosts():
    with tempfile.NamedTemporaryFile("w", prefix="hosts", delete=False) as hosts:
        hosts.write(_HOSTS.format(socket.gethostname()))
    atexit.register(os.unlink, hosts.name)
    wrapper = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', hosts.name]
    done = subprocess.run([*wrapper, "true"], capture_output=True, check=False)
    return wrapper if done.returncode == 0 else []


def start_python(python, code, *arguments, **environment):
    """Starts a script that must end well; pair with finish()."""
    foreign = ("TORCHELASTIC", "MASTER", "PET_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
    env.update(environment, OMP_NUM_THREADS="1")
    command = [*_own_hosts(), python, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def finish(process):
    try:
        out, err = process.communicate(timeout=SAFETY_NET_S)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        pytest.fail(f"did not end in {SAFETY_NET_S} s: {out}\n{err}")
    assert process.returncode == 0, f"{out}\n{err}"
    return out


def run_python(python, code, *arguments, **environment):
    return finish(start_python(python, code, *arguments, **environment))


def start_ranks(python, code, port, world_size, attempt=0):
    """Starts one script per rank with the environment that a launcher gives."""
    return [start_python(python, code, RANK=str(rank), LOCAL_RANK=str(rank),
                         WORLD_SIZE=str(world_size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                         TORCHELASTIC_USE_AGENT_STORE="True",
                         TORCHELASTIC_RESTART_COUNT=str(attempt), GLOO_SOCKET_IFNAME="lo",
                         TP_SOCKET_IFNAME="lo")
            for rank in range(world_size)]


def run_ranks(python, code, port, world_size, attempt=0):
    return [finish(rank) for rank in start_ranks(python, code, port, world_size, attempt)]
