"""Unmodified training scripts that use torch.distributed in the ways that people do."""

import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "scripts"
PAIR = "--nproc-per-node=2"
LIMIT = 240  # Imports of torch, on a machine that may be busy.


@pytest.fixture
def train(case):
    """Runs one script on two workers and gives its lines, sorted."""
    def run(script, *args, options=(), form="run", status=0):
        outcome = case.run(PAIR, *options, SCRIPTS / script, *args, form=form, timeout=LIMIT)
        assert outcome.status == status, outcome
        case.assert_nothing_left()
        return sorted(outcome.out.splitlines())
    return run


def test_env_init(train):
    assert train("env_init.py") == ["sum 3", "sum 3"]


def test_env_init_when_the_store_is_not_shared(case):
    outcome = case.run(PAIR, SCRIPTS / "env_init.py", timeout=LIMIT, env={"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"})
    assert (outcome.status, sorted(outcome.out.splitlines())) == (0, ["sum 3", "sum 3"]), outcome


def test_env_init_with_a_given_port(case):
    outcome = case.run(PAIR, f"--master-port={case.port()}", SCRIPTS / "env_init.py", timeout=LIMIT)
    assert (outcome.status, sorted(outcome.out.splitlines())) == (0, ["sum 3", "sum 3"]), outcome


def test_env_init_of_one_worker(case):
    outcome = case.run("--nproc-per-node=1", SCRIPTS / "env_init.py", timeout=LIMIT)
    assert (outcome.status, outcome.out) == (0, "sum 1\n"), outcome


def test_store_init(train):
    assert train("store_init.py") == ["own [1.0, 1.0, 1.0]"] * 2 + ["shared [1.0, 1.0, 1.0]"] * 2


def test_object_collectives_groups_and_monitored_barrier(train):
    assert train("objects_and_groups.py") == ["barrier"] * 2 + ["groups"] * 2 + ["objects"] * 2


def test_recorded_exception_is_the_root_cause(case):
    outcome = case.run(PAIR, f"--log-dir={case.dir}/logs", SCRIPTS / "recorded.py", timeout=LIMIT)
    assert outcome.status == 1
    root = outcome.err[outcome.err.index("Root Cause"):]
    assert "rank      : 1 (local_rank: 1)" in root
    assert "ValueError: the reason of rank 1" in root
    assert len(list((case.dir / "logs").rglob("1/error.json"))) == 1


@pytest.mark.parametrize(("spelling", "form", "options"), [
    ("--local_rank", "run", ()), ("--local-rank", "run", ()), ("none", "run", ()),
    ("--local_rank", "launch", ()), ("--local-rank", "launch", ()), ("none", "launch", ("--use-env",))])
def test_local_rank_arguments(case, spelling, form, options):
    text = (SCRIPTS / "local_rank.py").read_text()
    if spelling == "none":
        lines = [line for line in text.splitlines() if "SPELLING" not in line]
        text = "\n".join(lines).replace("arguments.local_rank", "-1")
    script = case.dir / "train.py"
    script.write_text(text.replace("SPELLING", spelling))
    outcome = case.run(PAIR, *options, script, "--epochs", "3", form=form, timeout=LIMIT)
    assert outcome.status == 0, outcome
    shown = [-1, -1] if spelling == "none" else [0, 1]
    assert sorted(outcome.out.splitlines()) == [f"local rank {shown[r]} env {r} epochs 3" for r in range(2)]


def test_a_script_that_does_not_know_the_argument_gets_the_way_out(case):
    """launch adds the argument always: the failure must name the command that works."""
    script = case.dir / "plain.py"
    script.write_text("import argparse\nargparse.ArgumentParser().parse_args()\n")
    outcome = case.run(PAIR, "-t", "3", script, form="launch")
    assert outcome.status == 1
    assert "--use-env" in outcome.err or "--local-rank-arg=never" in outcome.err


def test_data_loader_workers(train):
    assert train("loaders.py") == ["fork 496"] * 2 + ["spawn 496"] * 2


def test_distributed_checkpoint(train, tmp_path):
    assert train("checkpoint.py", tmp_path / "saved") == ["checkpoint"] * 2
    assert list((tmp_path / "saved").glob("*.distcp"))


def test_the_example_of_the_documentation(case):
    script = SCRIPTS.parent.parent.parent / "docs" / "examples" / "train_ddp.py"
    outcome = case.run(PAIR, script, "--steps=40", f"--checkpoint={case.dir}/model.pt", timeout=LIMIT)
    assert outcome.status == 0, outcome
    assert (case.dir / "model.pt").exists()
    again = case.run(PAIR, script, "--steps=60", f"--checkpoint={case.dir}/model.pt", timeout=LIMIT)
    assert "starts at step 40" in again.out


def test_debians_torch(case):
    """Torch 1.13 of Debian 12 speaks the oldest dialect of the store."""
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True, check=False).returncode:
        pytest.skip("the system's Python has no torch")
    outcome = case.run(PAIR, SCRIPTS / "env_init.py", timeout=LIMIT,
                       env={"PYTHON_EXEC": "/usr/bin/python3", "VIRTUAL_ENV": None})
    assert (outcome.status, sorted(outcome.out.splitlines())) == (0, ["sum 3", "sum 3"]), outcome
