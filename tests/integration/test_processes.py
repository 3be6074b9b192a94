"""Processes of a job: nothing outlives the launcher, whoever their parent or session is."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.launch import BIN, NOBODY, PROBE, PYTHON, nobody_can_run, reachable_for_all, wait_until

PAIR = "--nproc-per-node=2"


def test_a_job_that_ends_well_leaves_nothing(case):
    assert case.run(PAIR, PROBE).status == 0
    case.assert_nothing_left()


def test_what_a_finished_worker_left_running_is_ended(case):
    outcome = case.run("--shutdown-timeout=1", PROBE, plan="grandchild(new_session=True)")
    assert outcome.status == 0, outcome
    case.assert_nothing_left()


def test_grandchildren_of_a_crashed_worker_are_ended(case):
    outcome = case.run("--shutdown-timeout=1", PROBE, plan="grandchild(); grandchild(new_session=True); os._exit(3)")
    assert outcome.status == 1, outcome
    case.assert_nothing_left()


@pytest.mark.parametrize("session", [False, True])
def test_grandchildren_that_ignore_the_stop_are_killed_after_the_grace(case, session):
    running = case.start(PAIR, "--shutdown-timeout=1", PROBE,
                         plan=f"grandchild(new_session={session}); note('ready'); wait()")
    running.wait_event("ready", 2)
    running.send("SIGTERM")
    assert running.wait(20).status == 1
    case.assert_nothing_left()


def test_a_grandchild_without_our_environment_is_ended_with_the_launcher(case):
    """Only descent or a cgroup can find it: it has another session and an empty environment."""
    sleep = "subprocess.Popen(['/usr/bin/env', '-i', '/bin/sleep', '77.25'], start_new_session=True)"
    running = case.start("--shutdown-timeout=1", PROBE, plan=f"note('pid', {sleep}.pid); wait()")
    pid = running.wait_event("pid")[0]["value"]
    try:
        wait_until(lambda: b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes())
        running.send("SIGTERM")
        running.wait(20)
        wait_until(lambda: not os.path.exists(f"/proc/{pid}"), what="the end of the sleep")
    finally:
        subprocess.run(["kill", "-KILL", str(pid)], stderr=subprocess.DEVNULL, check=False)


def test_a_failed_worker_ends_its_peers_within_the_grace(case):
    outcome = case.run(PAIR, "--shutdown-timeout=1", PROBE,
                       plan="if rank == 1: wait_event('ready'); note('end'); sys.exit(1)\n"
                            "on_signals('SIGTERM'); note('ready'); wait()")
    assert outcome.status == 1
    stopped = case.events("signal")[0]["t"] - case.events("end")[0]["t"]
    assert stopped < 0.5, f"the peer heard of it {stopped:.3f} s after the note"
    case.assert_nothing_left()


def test_the_monitor_interval_does_not_delay_anything(case):
    """torchrun polls once per interval; here it only paces sampling."""
    started = time.monotonic()
    assert case.run("--monitor-interval=20", "--no-python", "true").status == 0
    assert time.monotonic() - started < 5
    outcome = case.run(PAIR, "--monitor-interval=20", "--max-restarts=1", PROBE,
                       plan="if restart == 0 and rank == 1: sys.exit(1)\nif restart == 0: wait()")
    assert outcome.status == 0
    assert outcome.seconds < 10, outcome


def test_a_wrapper_that_does_not_exec_passes_signals_and_arguments(case):
    wrapper = case.dir / "bind.sh"
    wrapper.write_text('#!/bin/bash\n"$@"\necho after\n')
    wrapper.chmod(0o755)
    running = case.start("--no-python", wrapper, PYTHON, PROBE, "--x", "a b",
                         plan="on_signals('SIGTERM', status=0); note('ready', sys.argv[1:]); wait()")
    assert running.wait_event("ready")[0]["value"] == ["--x", "a b"]
    running.send("SIGTERM")
    running.wait(20)
    assert [e["value"] for e in case.events("signal")] == ["SIGTERM"]
    case.assert_nothing_left()


@pytest.mark.parametrize(("mode", "text"), [(0o644, "#!/bin/sh\n"), (0o755, "#!/no/such/interpreter\n")])
def test_a_program_that_cannot_be_executed_is_named(case, mode, text):
    program = case.dir / "program"
    program.write_text(text)
    program.chmod(mode)
    outcome = case.run("--no-python", program)
    assert outcome.status == 1
    assert str(program) in outcome.err
    assert ("not executable" if mode == 0o644 else "/no/such/interpreter") in outcome.err
    assert "Traceback" not in outcome.err


def test_a_launcher_inside_a_worker(case):
    """An inner job gets its own world, run id, port and error file, whatever it inherits."""
    inner = f"subprocess.run([{str(BIN / 'ddprun')!r}, {PROBE!r}], env=env).returncode"
    plan = ("env = dict(os.environ, DDP_TEST_PLAN='note(\"inner\", dict(os.environ))')\n"
            f"note('status', {inner} if rank == 0 else 0)")
    outcome = case.run(PAIR, PROBE, plan=plan)
    assert outcome.status == 0, outcome
    assert [e["value"] for e in case.events("status")] == [0, 0]
    inner_env = case.events("inner")[0]["value"]
    outer_env = next(w for w in outcome.workers if w["env"]["WORLD_SIZE"] == "2")["env"]
    assert inner_env["WORLD_SIZE"] == "1"
    for name in ("TORCHELASTIC_RUN_ID", "MASTER_PORT", "TORCHELASTIC_ERROR_FILE"):
        assert inner_env[name] != outer_env[name], name


def test_only_the_first_worker_reads_stdin(case):
    outcome = case.run("--nproc-per-node=3", PROBE, stdin="one\ntwo\nthree\n",
                       plan="note('lines', [rank, sys.stdin.read().split()])")
    assert outcome.status == 0
    lines = dict(e["value"] for e in case.events("lines"))
    assert lines == {0: ["one", "two", "three"], 1: [], 2: []}


def test_workers_have_no_descriptors_of_the_launcher(case):
    outcome = case.run(PAIR, "-t", "3", PROBE)
    for worker in outcome.workers:
        extra = {fd: to for fd, to in worker["files"].items() if int(fd) > 2 and not to.startswith("/proc/")}
        assert extra == {}


def test_a_stopped_worker_is_ended_too(case):
    """SIGTERM alone does not wake a process in state T."""
    running = case.start("--shutdown-timeout=20", PROBE, plan="note('ready'); os.kill(os.getpid(), signal.SIGSTOP)")
    running.wait_event("ready")
    pid = case.workers()[0]["pid"]
    wait_until(lambda: Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T")
    running.send("SIGTERM")
    outcome = running.wait(20)
    assert outcome.status == 1
    assert outcome.seconds < 15
    case.assert_nothing_left()


# Becomes wholly root, so that the launcher, an ordinary user, may not signal it.
IMMUNE = r"""
#include <unistd.h>
int main() {
  if (setgid(0) != 0 || setuid(0) != 0) return 1;
  sleep(60);
  return 0;
}
"""


@pytest.mark.skipif(not nobody_can_run(), reason="needs root to become a user without rights")
def test_what_may_not_be_killed_is_named_and_left(case):
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    (case.dir / "immune.cc").write_text(IMMUNE)
    immune = case.dir / "immune"
    subprocess.run([compiler, "-o", immune, case.dir / "immune.cc"], check=True)
    immune.chmod(0o4755)
    case.tmp.chmod(0o777)
    with reachable_for_all(case.dir):
        running = case.start("--shutdown-timeout=1", "--no-python", immune, before=NOBODY)
        pid = wait_until(lambda: [p for p, c in case.processes().items() if c.startswith(str(immune))
                                  and Path(f"/proc/{p}").stat().st_uid == 0] or not running.alive())
        if pid is True:
            pytest.skip("set-uid programs do not work in the temporary folder")
        os.kill(running.pid, signal.SIGTERM)
        outcome = running.wait(30)
    assert outcome.status == 1
    assert str(pid[0]) in outcome.err, outcome.err


def test_a_store_that_workers_reach_only_on_loopback(case):
    running = case.start("--standalone", PROBE, plan="note('ready'); wait()")
    running.wait_event("ready")
    port = int(case.workers()[0]["env"]["MASTER_PORT"])
    addresses = listening_addresses(port)
    running.send("SIGTERM")
    running.wait(20)
    assert addresses and addresses <= {"0100007F", "00000000000000000000000001000000"}, addresses


def listening_addresses(port):
    """The local addresses, in the kernel's hexadecimal text, that listen on `port`."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if os.path.exists(table):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                address, number = fields[1].rsplit(":", 1)
                if fields[3] == "0A" and int(number, 16) == port:
                    found.add(address)
    return found
