"""The worker of the tests: writes down how it was started, then does what DDP_TEST_PLAN says.

It imports nothing but small modules of the standard library, so that hundreds of starts stay cheap.
DDP_TEST_PLAN is Python text that sees `rank`, `local_rank`, `world`, `restart` and the functions below.
"""

import json
import os
import signal
import stat
import subprocess
import sys
import time

FOLDER = os.environ["DDP_TEST_DIR"]
LIMIT = 120.0  # No worker of a test outlives this, whatever happens to the test.

rank = int(os.environ.get("RANK", "0"))
local_rank = int(os.environ.get("LOCAL_RANK", "0"))
world = int(os.environ.get("WORLD_SIZE", "1"))
restart = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def note(event, value=None):
    """Appends one line to the events of the run; O_APPEND keeps lines of several workers whole."""
    line = json.dumps({"rank": rank, "restart": restart, "pid": os.getpid(), "event": event,
                       "value": value, "t": time.monotonic()}) + "\n"
    fd = os.open(os.path.join(FOLDER, "events"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(fd, line.encode())
    os.close(fd)


def on_signals(*names, status=None):
    """Notes each of these signals; ends with `status` at the first, or goes on when it is None."""
    def handler(number, _frame):
        note("signal", signal.Signals(number).name)
        if status is not None:
            sys.stdout.flush()
            os._exit(status)

    for name in names:
        signal.signal(getattr(signal, name), handler)


def wait(seconds=LIMIT):
    """Waits for signals. Ends by itself with status 99, which no test expects."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(min(0.5, max(0.0, end - time.monotonic())))
    os._exit(99)


def wait_event(event, count=1, same_restart=True):
    """Returns once `count` workers have noted `event`."""
    end = time.monotonic() + 30.0
    while time.monotonic() < end:
        try:
            with open(os.path.join(FOLDER, "events"), encoding="utf-8") as file:
                lines = [json.loads(line) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            lines = []
        seen = [line for line in lines if line["event"] == event
                and (not same_restart or line["restart"] == restart)]
        if len(seen) >= count:
            return
        time.sleep(0.005)
    os._exit(98)


def die(name):
    """Ends by this signal, without a core file."""
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    number = getattr(signal, name)
    if name != "SIGKILL":
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    wait(10.0)


def grandchild(code="", new_session=False):
    """Starts a Python process that ignores SIGTERM, SIGINT and SIGHUP, runs `code` and stays."""
    text = ("import signal,time,os\n"
            "for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)\n"
            f"{code}\nprint('up', flush=True)\ntime.sleep({LIMIT})\n")
    child = subprocess.Popen([sys.executable, "-S", "-c", text], stdout=subprocess.PIPE,
                             stdin=subprocess.DEVNULL, start_new_session=new_session)
    child.stdout.readline()
    note("grandchild", child.pid)
    return child


def dump():
    with open("/proc/self/status", encoding="utf-8") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    record = {
        "rank": rank, "local_rank": local_rank, "restart": restart,
        "pid": os.getpid(), "ppid": os.getppid(), "pgid": os.getpgid(0), "sid": os.getsid(0),
        "argv": sys.argv, "command": sys.orig_argv, "cwd": os.getcwd(), "env": dict(os.environ),
        "blocked": status["SigBlk"].strip(), "ignored": status["SigIgn"].strip(),
        "files": {fd: os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
                  if os.path.lexists(f"/proc/self/fd/{fd}")},
        "cpus": sorted(os.sched_getaffinity(0)), "t": time.monotonic(),
    }
    path = os.path.join(FOLDER, "workers", f"{restart}-{rank}-{local_rank}-{os.getpid()}.json")
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(record, file)
    os.rename(path + ".new", path)


if __name__ == "__main__":
    dump()
    exec(compile(os.environ.get("DDP_TEST_PLAN", ""), "plan", "exec"))
