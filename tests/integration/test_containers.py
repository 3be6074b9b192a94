"""The launcher as process 1 of a PID namespace, as in a container without an init."""

import os
import signal
from pathlib import Path

import pytest

from tests.support.launch import PROBE, wait_until

NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a PID namespace needs root")


def first_process(running):
    """The launcher's pid as we see it."""
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    return wait_until(lambda: [int(c) for c in children.read_text().split()])[0]


def test_a_job_runs_to_its_end(case):
    outcome = case.run("--nproc-per-node=2", PROBE, before=NAMESPACE)
    assert outcome.status == 0, outcome
    assert all(w["ppid"] in (0, 1) or w["ppid"] > 1 for w in outcome.workers)
    assert run_status(case, "sys.exit(3)") == 1


def run_status(case, plan):
    return case.run(PROBE, plan=plan, before=NAMESPACE).status


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_stop_signals_work_although_process_1_has_no_default_actions(case, name):
    running = case.start("--nproc-per-node=2", PROBE, before=NAMESPACE,
                         plan="on_signals('SIGTERM', 'SIGINT', status=0); note('ready'); wait()")
    running.wait_event("ready", 2)
    os.kill(first_process(running), getattr(signal, name))
    assert running.wait(20).status == 1
    assert [e["value"] for e in case.events("signal")] == [name, name]


def test_orphans_are_reaped(case):
    """Double-forked children end as children of process 1; none may stay a zombie."""
    orphan = "subprocess.run(['sh', '-c', 'sleep 0.05 & exit 0'])"
    plan = (f"for _ in range(20): {orphan}\n"
            "def zombies():\n"
            "  out = subprocess.run(['ps', '-e', '-o', 'stat=,comm='], capture_output=True, text=True).stdout\n"
            "  return [l for l in out.splitlines() if l.startswith('Z') or 'sleep' in l]\n"
            "end = time.monotonic() + 10\n"
            "while zombies() and time.monotonic() < end: time.sleep(0.05)\n"
            "note('zombies', zombies())")
    outcome = case.run(PROBE, plan=plan, before=NAMESPACE)
    assert outcome.status == 0, outcome
    assert case.events("zombies")[0]["value"] == []


def test_stubborn_grandchildren_end_with_the_launcher(case):
    running = case.start("--shutdown-timeout=1", PROBE, before=NAMESPACE,
                         plan="grandchild(new_session=True); note('ready'); wait()")
    running.wait_event("ready")
    os.kill(first_process(running), signal.SIGTERM)
    assert running.wait(20).status == 1
    case.assert_nothing_left()
