"""torch's own file timer client against our server (conformance row 80)."""

import importlib.util
import os
import pathlib
import signal
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("DDPRUN_BIN_DIR", TESTS.parent / "build" / "dev" / "bin"))
SERVER = BIN / "file_timer_server"
DDPRUN = BIN / "ddprun"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed"
)

# argv: how the timer is used, and the signal.
WORKER = """
import os, sys, time
from torch.distributed.elastic import timer
path = os.environ["TORCHELASTIC_TIMER_FILE"]
timer.configure(timer.FileTimerClient(path, int(sys.argv[2])))
with timer.expires(after=600, scope="never"):
    if sys.argv[1] == "released":
        with timer.expires(after=600, scope="short"):
            pass
        print("done", flush=True)
        sys.exit(0)
    with timer.expires(after=0.2, scope="step"):
        time.sleep(60)
"""


def run_worker(tmp_path, path, use, number):
    script = tmp_path / "w.py"
    script.write_text(WORKER)
    return subprocess.run(
        [sys.executable, script, use, str(int(number))],
        env={**os.environ, "TORCHELASTIC_TIMER_FILE": str(path)},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def server(tmp_path):
    if not SERVER.exists():
        pytest.skip(f"{SERVER} is not built")
    path = tmp_path / "watchdog"
    process = subprocess.Popen(
        [SERVER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    yield process, path
    out, _ = process.communicate(timeout=10)
    assert process.returncode == 0
    assert not path.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_torchs_client_is_killed_by_the_signal_it_asked_for(server, tmp_path, number):
    process, path = server
    result = run_worker(tmp_path, path, "expired", number)
    assert result.returncode == -number, result.stderr
    assert process.stdout.readline().split()[1:] == [str(int(number)), "step"]


def test_torchs_client_that_releases_its_timers_lives(server, tmp_path):
    process, path = server
    result = run_worker(tmp_path, path, "released", signal.SIGKILL)
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr
    out, _ = process.communicate(timeout=10)
    assert out == ""


def test_the_launcher_outlives_the_worker_it_kills(tmp_path):
    if not DDPRUN.exists():
        pytest.skip(f"{DDPRUN} is not built")
    script = tmp_path / "w.py"
    script.write_text(
        "import os, stat\n"
        "path = os.environ['TORCHELASTIC_TIMER_FILE']\n"
        "print('fifo', stat.S_ISFIFO(os.stat(path).st_mode), flush=True)\n" + WORKER
    )
    path = tmp_path / "timer"
    result = subprocess.run(
        [DDPRUN, "--nproc-per-node=1", script, "expired", str(int(signal.SIGKILL))],
        env={
            **os.environ,
            "PYTHON_EXEC": sys.executable,
            "TORCHELASTIC_ENABLE_FILE_TIMER": "1",
            "TORCHELASTIC_TIMER_FILE": str(path),
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "fifo True" in result.stdout
    assert result.returncode == 1, result.stderr
    assert "SIGKILL" in result.stderr
    assert not path.exists()
