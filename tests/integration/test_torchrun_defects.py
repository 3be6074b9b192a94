"""Defects of torchrun 2.15 that one node can show (spec of torchrun, 4.10): ours does better.

#1 is in test_restart.py, #7 in test_bad_input.py; #2, #4, #5 and #6 need several nodes.
"""

import os
import shutil
import subprocess

import pytest

from tests.support.launch import PROBE

# A process that waits in vfork() is in state D, the only such state that needs no broken driver.
VFORK = r"""
#include <stdlib.h>
#include <unistd.h>
int main() {
  if (vfork() == 0) {
    for (;;) pause();
  }
  return 0;
}
"""


@pytest.fixture
def blocked(tmp_path):
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    (tmp_path / "blocked.cc").write_text(VFORK)
    subprocess.run([compiler, "-w", "-O1", "-o", tmp_path / "blocked", tmp_path / "blocked.cc"], check=True)
    return tmp_path / "blocked"


def test_03_a_worker_in_state_d_is_a_failure(case, blocked):
    """torchrun stops the workers and exits 0."""
    outcome = case.run("--max-restarts=2", "--shutdown-timeout=1", "--monitor-interval=0.1", "--no-python", blocked,
                       env={"TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT": "1"}, timeout=30)
    assert outcome.status == 1, outcome
    assert "uninterruptible" in outcome.err or "state D" in outcome.err
    case.assert_nothing_left()


@pytest.mark.parametrize("value", ["", "x", "0", "-1"])
def test_03_the_check_is_off_for_other_values(case, value):
    outcome = case.run("--no-python", "true", env={"TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT": value})
    assert outcome.status == 0, outcome


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to change the host name of a namespace")
def test_08_a_host_name_that_does_not_resolve(case):
    """torchrun hangs and ignores SIGINT meanwhile."""
    outcome = case.run("--nproc-per-node=2", PROBE, timeout=20,
                       before=["unshare", "--uts", "sh", "-c", 'hostname no-such-name.invalid && exec "$@"', "sh"])
    assert outcome.status == 0, outcome
    assert outcome.seconds < 5
    assert {w["env"]["MASTER_ADDR"] for w in outcome.workers} == {"127.0.0.1"}


def test_09_a_third_signal_does_not_abandon_the_workers(case):
    running = case.start("--nproc-per-node=2", "--shutdown-timeout=30", PROBE,
                         plan="on_signals('SIGTERM', 'SIGINT', 'SIGHUP'); note('ready'); wait()")
    running.wait_event("ready", 2)
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        if running.alive():
            running.send(name)
    assert running.wait(15).status == 1
    case.assert_nothing_left()
