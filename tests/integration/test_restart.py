"""A job whose worker dies is up again with a working process group, every time.

torchrun 2.15 gives the second attempt the store of the first, with all its keys, and then fails or hangs.
"""

from pathlib import Path

import pytest

from tests.support.launch import PROBE

JOB = Path(__file__).parent / "scripts" / "restart_job.py"
ROUNDS = 3  # 20 with --soak.


@pytest.mark.parametrize("death", ["kill", "exit"])
@pytest.mark.parametrize("world", [2, 4])
def test_a_gloo_job_is_up_again(case, world, death, soak):
    if death == "exit" and not soak:
        rounds = 1
    else:
        rounds = 20 if soak else ROUNDS
    for round_ in range(rounds):
        outcome = case.run(f"--nproc-per-node={world}", "--max-restarts=1", JOB, death, timeout=240)
        assert outcome.status == 0, f"round {round_}: {outcome}"
        assert outcome.out.splitlines() == [f"attempt 1 world {world}"] * world, f"round {round_}: {outcome}"
        case.assert_nothing_left()


def test_every_attempt_has_a_port_of_its_own_or_an_empty_store(case):
    """Cheap form of the above, without torch: what the workers see in each attempt."""
    outcome = case.run("--nproc-per-node=2", "--max-restarts=3", PROBE, 
                       plan="note('up'); wait_event('up', 2); sys.exit(restart < 3)")
    assert outcome.status == 0, outcome
    assert [w["restart"] for w in outcome.workers] == [0, 0, 1, 1, 2, 2, 3, 3]
    for attempt in range(4):
        ports = {w["env"]["MASTER_PORT"] for w in outcome.workers if w["restart"] == attempt}
        assert len(ports) == 1


def test_a_given_port_is_kept_over_restarts(case):
    port = case.port()
    outcome = case.run("--nproc-per-node=2", f"--master-port={port}", "--max-restarts=2", PROBE,
                       plan="sys.exit(restart < 2)")
    assert outcome.status == 0, outcome
    assert {w["env"]["MASTER_PORT"] for w in outcome.workers} == {str(port)}


def test_a_restart_with_a_file_of_the_launchers_timer(case):
    outcome = case.run("--max-restarts=1", PROBE, env={"TORCHELASTIC_ENABLE_FILE_TIMER": "1"},
                       plan="note('fifo', os.path.exists(os.environ['TORCHELASTIC_TIMER_FILE'])); sys.exit(1 - restart)")
    assert outcome.status == 0, outcome
    assert [e["value"] for e in case.events("fifo")] == [True, True]
    case.assert_nothing_left()
