"""SIGKILL at every phase: of the launcher, of a worker, of a worker with stubborn grandchildren.

204 rounds in all. After each one no process, no port, no FIFO and no temporary file is left.
"""

import concurrent.futures
import contextlib
import os
import random
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.support.launch import PROBE, START, Case, Launcher, wait_until

ROUNDS = 17  # Times four phases times three targets.
PHASES = ("before exec", "in import", "in training", "while stopping")
TARGETS = ("launcher", "worker", "worker with grandchildren")

# What each worker does. The import of a module that takes its time stands for a long import of torch.
PLAN = """
if FAMILY:
    grandchild(new_session=True)
    grandchild()
def training():
    note('ready')
    wait()
if IMPORTING:
    note('ready')
    sys.path.insert(0, FOLDER)
    import endless
on_signals('SIGTERM')
training()
"""


def children(pid):
    with contextlib.suppress(OSError):
        return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def kill_before_exec(running, target, seconds):
    """The launcher at a moment around its first fork; else any of its first children, as soon as it can be seen.

    That may be the guardian or a probe: then the job goes on, and a worker is killed once it is ready.
    """
    if target == "launcher":
        time.sleep(seconds)  # The moment is what varies, nothing is waited for.
        kill(running.pid)
        return
    victims = wait_until(lambda: children(running.pid) or not running.alive())
    if victims is not True:
        kill(random.choice(victims))
    wait_until(lambda: not running.alive() or len(running.case.events("ready")) == 2, START)
    if running.alive():
        kill_when_ready(running, target, False)


def kill_when_ready(running, target, stopping):
    running.wait_event("ready", 2)
    if stopping:
        running.send("SIGTERM")
        running.wait_event("signal", 1)
    victim = running.pid if target == "launcher" else running.case.workers()[1]["pid"]
    kill(victim)


def one_round(directory, phase, target, number):
    case = Case(Launcher("ddprun"), directory)
    try:
        (case.dir / "endless.py").write_text("import time\ntime.sleep(120)\n")
        plan = (f"FAMILY = {target == TARGETS[2]}\nIMPORTING = {phase == 'in import'}\n" + PLAN)
        timer = {"TORCHELASTIC_ENABLE_FILE_TIMER": "1"} if number % 2 else {}
        grace = 1 if number % 4 == 0 else 0  # Without grace SIGKILL follows at once.
        running = case.start("--nproc-per-node=2", f"--shutdown-timeout={1 if phase == PHASES[3] else grace}",
                             PROBE, plan=plan, env=timer)
        if phase == "before exec":
            kill_before_exec(running, target, number * 0.002)
        else:
            kill_when_ready(running, target, phase == "while stopping")
        outcome = running.wait(20)
        expected = (137,) if target == "launcher" else (1,)
        assert outcome.status in expected + ((0, 1) if phase == "before exec" else ()), outcome
        case.assert_nothing_left()
        assert_no_port(outcome)
    finally:
        case.close()


def assert_no_port(outcome):
    for worker in outcome.workers:
        with socket.socket() as client:
            port = int(worker["env"]["MASTER_PORT"])
            assert client.connect_ex(("127.0.0.1", port)) != 0, f"port {port} is still open"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("phase", PHASES)
def test_a_kill_leaves_nothing(case, tmp_path, phase, target, soak):
    rounds = range(ROUNDS * (10 if soak else 1))
    with concurrent.futures.ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as pool:
        runs = [pool.submit(one_round, tmp_path / f"round{n}", phase, target, n) for n in rounds]
    failed = [f"round {n}: {run.exception()}" for n, run in enumerate(runs) if run.exception() is not None]
    assert not failed, "\n".join(failed)
