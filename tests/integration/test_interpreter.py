"""Which Python runs the workers."""

import os
import subprocess
import sys

from tests.support.launch import PROBE, PYTHON


def fake_python(path):
    """A Python that can be told from others by its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(os.path.realpath(PYTHON))
    return path


def command(case, **env):
    outcome = case.run(PROBE, env=env)
    assert outcome.status == 0, outcome
    return outcome.workers[0]["command"][0]


def test_the_variable_comes_first(case):
    python = fake_python(case.dir / "chosen" / "py")
    assert command(case, PYTHON_EXEC=python) == str(python)


def test_then_the_active_virtual_environment(case):
    made = case.dir / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made], check=True)
    outcome = case.run("--nproc-per-node=2", PROBE, env={"VIRTUAL_ENV": made, "PATH": "/usr/bin:/bin"},
                       plan="note('prefix', sys.prefix)")
    assert outcome.status == 0, outcome
    assert [e["value"] for e in case.events("prefix")] == [str(made)] * 2


def test_then_the_active_conda_environment(case):
    python = fake_python(case.dir / "conda" / "bin" / "python")
    assert command(case, VIRTUAL_ENV=None, CONDA_PREFIX=case.dir / "conda", PATH="/usr/bin:/bin") == str(python)


def test_then_the_path(case):
    python = fake_python(case.dir / "on_path" / "python3")
    used = command(case, VIRTUAL_ENV=None, PATH=f"{case.dir}/on_path:/usr/bin:/bin")
    assert os.path.realpath(used) == os.path.realpath(python)


def test_without_any_python_it_is_said(case):
    outcome = case.run(PROBE, env={"VIRTUAL_ENV": None, "PATH": str(case.tmp)})
    assert outcome.status == 1
    assert "python" in outcome.err and "PYTHON_EXEC" in outcome.err
    assert outcome.workers == []
