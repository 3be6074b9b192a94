"""The child of --run-path behaves as torchrun's: argv, __main__, error file, exit codes."""

import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

TESTS = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("DDPRUN_BIN_DIR", TESTS.parent / "build" / "dev" / "bin"))
PROGRAM = BIN / "exec_worker_command"

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")


@pytest.fixture
def run(tmp_path):
    """Runs a script's text; the result also holds the error record, if one was written."""

    def start(text, *arguments, kind="run-path", rank=0, error_file=None):
        script = tmp_path / "w.py"
        script.write_text(text)
        path = tmp_path / "error.json" if error_file is None else error_file
        result = subprocess.run(
            [PROGRAM, kind, sys.executable, str(rank), script, *arguments],
            env={**os.environ, "TORCHELASTIC_ERROR_FILE": str(path)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        exists = path and pathlib.Path(path).exists()
        result.record = json.loads(pathlib.Path(path).read_text()) if exists else None
        return result

    return start


def test_the_script_is_main_and_sees_its_own_arguments(run, tmp_path):
    result = run(
        "import sys\nprint(__name__, __file__)\nprint(sys.argv)\n", "a b", "$local_rank", rank=3
    )
    script = str(tmp_path / "w.py")
    assert result.stdout.splitlines() == [f"__main__ {script}", str([script, "a b", "3"])]
    assert result.returncode == 0
    assert result.record is None


def test_an_exception_is_recorded_in_torchs_schema_and_raised_on(run):
    before = int(time.time())
    result = run("def f():\n    raise ValueError('b\\u00fcm')\nf()\n")
    assert result.returncode == 1
    assert "ValueError: b" in result.stderr
    message = result.record["message"]
    assert message["message"] == "ValueError: b\u00fcm"
    assert set(message["extraInfo"]) == {"py_callstack", "timestamp"}
    assert "w.py\", line 2, in f" in message["extraInfo"]["py_callstack"]
    assert before <= int(message["extraInfo"]["timestamp"]) <= int(time.time())


@pytest.mark.parametrize(
    "ending, code",
    [("sys.exit(7)", 7), ("sys.exit(0)", 0), ("sys.exit('bad')", 1), ("raise SystemExit", 0)],
)
def test_system_exit_keeps_its_code_and_is_not_recorded(run, ending, code):
    result = run(f"import sys\n{ending}\n")
    assert result.returncode == code
    assert result.record is None


def test_an_interrupt_is_not_recorded(run):
    result = run("raise KeyboardInterrupt\n")
    assert result.returncode != 0
    assert result.record is None


def test_a_syntax_error_is_recorded(run):
    result = run("def\n")
    assert result.returncode == 1
    assert result.record["message"]["message"].startswith("SyntaxError: ")


def test_the_fault_handler_is_on(run):
    assert run("import faulthandler\nprint(faulthandler.is_enabled())\n").stdout == "True\n"


def test_no_error_file_is_no_trouble(run):
    result = run("raise ValueError('x')\n", error_file="")
    assert result.returncode == 1
    assert "ValueError: x" in result.stderr


def test_an_error_file_that_cannot_be_written_hides_nothing(run):
    result = run("raise ValueError('x')\n", error_file="/nosuch/folder/error.json")
    assert result.returncode == 1
    assert "cannot write the error file" in result.stderr
    assert "ValueError: x" in result.stderr


def test_multiprocessing_finds_the_script_again(run):
    result = run(
        "import multiprocessing\n"
        "def f(x):\n    return x + 1\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(f, [1, 2]))\n"
    )
    assert result.stdout == "[2, 3]\n", result.stderr


def test_output_is_not_buffered(run):
    result = run("import os\nprint('out')\nos._exit(0)\n")
    assert result.stdout == "out\n"
