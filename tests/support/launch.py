"""Runs a launcher the way a user does and collects what can be seen from outside.

A `Case` is one fresh directory with a controlled environment. Everything that is started in it carries the
case's own variable DDP_TEST_RUN, so that whatever is left can be found by it, also grandchildren in other
sessions, and is ended when the case is closed. Nothing here waits without a limit.
"""

import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import threading
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
PROBE = str(TESTS / "support" / "workers" / "probe.py")
VENV = ROOT / ".venv"
PYTHON = str(VENV / "bin" / "python")
BIN = Path(os.environ.get("DDPRUN_BIN_DIR", ROOT / "build" / "release" / "bin"))
SAFETY = 10.0  # Longest wait for an event that is expected at once.
START = 60.0  # Longest wait for workers: real torchrun needs seconds, more on a busy machine.


def have_ddprun():
    return (BIN / "ddprun").exists()


def shell_status(returncode):
    """The status as a shell shows it: 128+n for a death by signal."""
    return returncode if returncode >= 0 else 128 - returncode


@dataclass(frozen=True, repr=False)
class Outcome:
    """A run that has ended."""

    status: int  # As a shell shows it.
    out: str
    err: str
    seconds: float
    workers: list = field(default_factory=list)  # The dumps of probe.py, by (restart, rank).

    def __repr__(self):
        return f"status {self.status} after {self.seconds:.2f} s\n-- stdout\n{self.out}\n-- stderr\n{self.err}"


class ForkedProcess:
    """A torchrun forked by WarmTorchrun, with the part of Popen's interface that Running uses."""

    def __init__(self, connection):
        self._connection = connection
        self.pid = json.loads(connection.recv(4096))["pid"]
        self.returncode = None

    def wait(self, timeout):
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("warm torchrun", timeout)
            status = json.loads(self._connection.recv(4096))["status"]
            self.returncode = os.waitstatus_to_exitcode(status)
            self._connection.close()
        return self.returncode

    def poll(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode


class WarmTorchrun:
    """One imported torchrun for a whole test session, started at the first use."""

    def __init__(self, directory):
        self._directory = directory
        self._address = str(directory / "warm.sock")
        self._lock = threading.Lock()
        self._process = None

    def start(self, module, args, env, cwd, fds):
        with self._lock:
            if self._process is None:
                self._launch()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect(self._address)
        request = json.dumps({"module": module, "args": args, "env": env, "cwd": cwd})
        socket.send_fds(connection, [request.encode()], fds)
        return ForkedProcess(connection)

    def _launch(self):
        script = str(TESTS / "support" / "warm_torchrun.py")
        with open(self._directory / "warm.log", "wb") as log:
            self._process = subprocess.Popen(
                [PYTHON, script, self._address], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log, env=base_environment(), cwd=self._directory)
        if self._process.stdout.readline() != b"ready\n":
            raise RuntimeError(f"the warm torchrun did not start: see {self._directory}/warm.log")

    def close(self):
        if self._process is not None:
            self._process.stdin.close()
            self._process.wait(SAFETY)


def base_environment():
    """What every launcher of a test starts with: nothing of the caller's but where programs are."""
    return {
        "PATH": f"{VENV / 'bin'}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "VIRTUAL_ENV": str(VENV), "HOME": "/nonexistent", "LANG": "C.UTF-8", "TZ": "UTC",
    }


def host_name_resolves():
    try:
        socket.getaddrinfo(socket.gethostname(), None)
        return True
    except OSError:
        return False


class Launcher:
    """One of the two sides of a comparison: how its programs are called."""

    def __init__(self, name, warm=None):
        self.name = name  # "torchrun" or "ddprun"
        self.warm = warm
        # Real torchrun needs a host name that resolves; without one it gets a name of its own.
        self.prefix = []
        if name == "torchrun" and not host_name_resolves():
            self.prefix = ["unshare", "--uts", "sh", "-c", 'hostname localhost && exec "$@"', "sh"]

    def command(self, form):
        if self.name == "torchrun":
            module = {"run": "torch.distributed.run", "launch": "torch.distributed.launch"}[form]
            return [*self.prefix, PYTHON, "-m", module]
        return [str(BIN / {"run": "ddprun", "launch": "ddprun-launch"}[form])]


class Running:
    """A launcher that was started by a Case."""

    def __init__(self, case, process, started, out, err):
        self.case = case
        self.process = process
        self.pid = process.pid
        self.started = started
        self._out = out
        self._err = err

    def send(self, name):
        os.kill(self.pid, getattr(signal, name))

    def wait(self, timeout=START):
        """The outcome; ends everything and raises when the launcher is still there after `timeout`."""
        try:
            wait_exit(self.process, timeout)
        except subprocess.TimeoutExpired:
            text = self._text(self._out) + self._text(self._err)
            self.case.end_processes()
            raise AssertionError(f"{self.case.launcher.name} still runs after {timeout} s:\n{text}") from None
        seconds = time.monotonic() - self.started
        return Outcome(shell_status(self.process.returncode), self._text(self._out), self._text(self._err),
                       seconds, self.case.workers())

    @staticmethod
    def _text(path):
        return path.read_bytes().decode("utf-8", "replace") if path is not None else ""

    def alive(self):
        return self.process.poll() is None

    def wait_event(self, event, count=1, timeout=START, restart=None):
        """The first `count` such notes of probe.py; an error when the launcher ends before."""
        def found():
            seen = [e for e in self.case.events(event) if restart is None or e["restart"] == restart]
            return seen[:count] if len(seen) >= count else None
        return wait_until(lambda: found() or (not self.alive() and (found() or self._give_up(event))),
                          timeout, f"{count} times the event {event!r}", self._state)

    def _give_up(self, event):
        raise AssertionError(f"the launcher ended before the event {event!r}: {self._state()}")

    def _state(self):
        return f"status {self.process.poll()}\n{self._text(self._out)}\n{self._text(self._err)}"


def wait_exit(process, timeout):
    """Popen.wait polls at up to 50 ms; a pidfd tells at once."""
    if process.poll() is None and isinstance(process, subprocess.Popen):
        pidfd = os.pidfd_open(process.pid)
        try:
            if not select.select([pidfd], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(process.args, timeout)
        finally:
            os.close(pidfd)
    process.wait(timeout)


def wait_until(condition, timeout=SAFETY, what="the condition", state=lambda: ""):
    """Polls `condition` until it gives a true value, which is returned."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout} s for {what}: {state()}")
        time.sleep(0.004)


class Case:
    """One scenario under one launcher."""

    def __init__(self, launcher, directory):
        self.launcher = launcher
        self.dir = Path(directory)
        self.tmp = self.dir / "tmp"
        self.run_id = uuid.uuid4().hex
        for folder in (self.tmp, self.dir / "workers"):
            folder.mkdir(parents=True, exist_ok=True)
        self.env = base_environment() | {
            "TMPDIR": str(self.tmp), "DDP_TEST_DIR": str(self.dir), "DDP_TEST_RUN": self.run_id}
        self.ports = []
        self._count = 0

    # -- starting

    def start(self, *args, form="run", plan=None, env=None, stdin=None, warm=False, cwd=None, before=(),
              stdout=None, stderr=None, **popen):
        """Starts the launcher. `env` values of None remove a variable; `before` is a command prefix."""
        self._count += 1
        for old in (self.dir / "workers").iterdir():
            old.unlink()
        (self.dir / "events").unlink(missing_ok=True)
        environment = self.environment(plan, env)
        out = self.dir / f"out.{self._count}" if stdout is None else None
        err = self.dir / f"err.{self._count}" if stderr is None else None
        with contextlib.ExitStack() as stack:
            streams = [stack.enter_context(self._stdin(stdin)),
                       stack.enter_context(open(out, "wb")) if out else stdout,
                       stack.enter_context(open(err, "wb")) if err else stderr]
            started = time.monotonic()
            if warm and self.launcher.warm is not None and not self.launcher.prefix:
                process = self.launcher.warm.start(form, [str(a) for a in args], environment,
                                                   str(cwd or self.dir), [s.fileno() for s in streams])
            else:
                process = subprocess.Popen(
                    [*before, *self.launcher.command(form), *map(str, args)], stdin=streams[0],
                    stdout=streams[1], stderr=streams[2], env=environment, cwd=cwd or self.dir,
                    **({"start_new_session": True} | popen))
        return Running(self, process, started, out, err)

    def run(self, *args, timeout=START, **how):
        return self.start(*args, **how).wait(timeout)

    def environment(self, plan=None, env=None):
        merged = self.env | ({"DDP_TEST_PLAN": plan} if plan is not None else {}) | (env or {})
        return {name: str(value) for name, value in merged.items() if value is not None}

    def _stdin(self, text):
        if text is None:
            return open(os.devnull, "rb")
        path = self.dir / "stdin"
        path.write_bytes(text.encode())
        return open(path, "rb")

    # -- what the workers wrote

    def workers(self):
        dumps = [json.loads(path.read_text()) for path in (self.dir / "workers").glob("*.json")]
        return sorted(dumps, key=lambda d: (d["restart"], d["rank"], d["local_rank"], d["t"]))

    def events(self, event=None):
        try:
            lines = (self.dir / "events").read_text().splitlines(keepends=True)
        except FileNotFoundError:
            return []
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        return [e for e in events if event is None or e["event"] == event]

    def tree(self, folder, contents=False):
        """Relative masked paths of all files below `folder`, sorted; with their text if wanted."""
        paths = sorted(Path(folder).rglob("*"))
        names = {p: self.mask(str(p.relative_to(folder))) for p in paths}
        if contents:
            return {names[p]: self.mask(p.read_text(errors="replace")) for p in paths if p.is_file()}
        return [names[p] + ("/" if p.is_dir() and not p.is_symlink() else "") for p in paths]

    # -- masking

    def port(self):
        """A free port of this machine, masked as <given port>."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.ports.append(probe.getsockname()[1])
        return self.ports[-1]

    def mask(self, text):
        """`text` without what differs from run to run."""
        text = text.replace(str(self.dir), "<dir>").replace(str(ROOT), "<root>")
        text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uuid>", text)
        text = re.sub(r"(?<=torchelastic_)[a-z0-9_]{8}\b", "<random>", text)
        text = re.sub(r"((?:<uuid>|none|\bjob\w*)_)[a-z0-9_]{8}(?=/|$)", r"\1<random>", text)
        for port in self.ports:
            text = re.sub(rf"\b{port}\b", "<given port>", text)
        for worker in self.workers():
            text = re.sub(rf"\b{worker['pid']}\b", "<pid>", text)
        text = re.sub(r"\b\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d\b", "<time>", text)
        return text

    # -- what is left

    def processes(self):
        """Live processes of this case, as {pid: command line}, whoever their parent is now."""
        mark = f"DDP_TEST_RUN={self.run_id}".encode()
        found = {}
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                environment = Path(f"/proc/{entry}/environ").read_bytes()
                if mark in environment.split(b"\0"):
                    command = Path(f"/proc/{entry}/cmdline").read_bytes()
                    if command:  # Empty: it is just ending.
                        found[int(entry)] = command.replace(b"\0", b" ").decode(errors="replace")[:200]
        return found

    def end_processes(self):
        for _ in range(100):
            alive = self.processes()
            if not alive:
                return
            for pid in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        raise RuntimeError(f"cannot end {alive}")

    def assert_nothing_left(self, within=SAFETY):
        """No process, and with it no port; no FIFO, no file in the temporary folder."""
        wait_until(lambda: not self.processes(), within, "the end of all processes",
                   lambda: str(self.processes()))
        # A cache folder is torch's own: a worker that was killed cannot remove it.
        left = [str(p) for p in self.tmp.rglob("*") if "torchinductor" not in str(p)]
        if left:
            raise AssertionError(f"left in the temporary folder: {left}")

    def close(self):
        self.end_processes()


def link_as(case, name):
    """A link to ddprun under another name, as an administrator makes it."""
    link = case.dir / name
    link.symlink_to(BIN / "ddprun")
    return link


# A command prefix: the rest runs as a user without rights.
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def nobody_can_run():
    """Whether we may become that user, and that user reaches ddprun."""
    if os.geteuid() != 0:
        return False
    return subprocess.run([*NOBODY, "test", "-x", BIN / "ddprun"], check=False).returncode == 0


@contextlib.contextmanager
def reachable_for_all(folder):
    """Lets other users into a test's private folder and its parents for a while."""
    closed = [(p, p.stat().st_mode) for p in (folder, *folder.parents) if p.stat().st_mode & 0o055 != 0o055]
    for path, mode in closed:
        path.chmod(mode | 0o055)
    try:
        yield
    finally:
        for path, mode in closed:
            path.chmod(mode)
