"""What the scanner reads in a script is what the script's own Python accepts.

Every file in testdata/script says in its first lines what is expected of it:
`# expect: <spellings or nothing>`, `# needs: <package>`, `# rejects` (it ends
with status 2 when it is given the argument).
"""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("DDPRUN_BIN_DIR", TESTS.parent / "build" / "dev" / "bin"))
SCANNER = BIN / "scan_local_rank"
DECLARES = sorted((TESTS / "testdata" / "script" / "declares").glob("*.py"))
SILENT = sorted((TESTS / "testdata" / "script" / "silent").glob("*.py"))

pytestmark = pytest.mark.skipif(not SCANNER.exists(), reason=f"{SCANNER} is not built")


def header(path):
    fields = {}
    for line in path.read_text().splitlines():
        if not line.startswith("# "):
            break
        key, _, value = line[2:].partition(":")
        fields[key] = value.strip()
    return fields


def scan(path):
    out = subprocess.run([SCANNER, path], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return sorted({row[0] for row in rows if row[-1] == "command"})


def run(path, *arguments):
    return subprocess.run(
        [sys.executable, path, *arguments], capture_output=True, text=True, timeout=60
    )


def skip_without(fields):
    package = fields.get("needs")
    if package and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


def test_there_are_enough_cases():
    assert len(DECLARES) >= 30
    assert len(SILENT) >= 25


@pytest.mark.parametrize("path", DECLARES, ids=lambda path: path.stem)
def test_a_declared_spelling_is_accepted(path):
    fields = header(path)
    spellings = fields["expect"].split()
    assert scan(path) == sorted(spellings)
    skip_without(fields)
    if "match" in path.stem and sys.version_info < (3, 10):
        pytest.skip("match statements need Python 3.10")
    for spelling in spellings:
        result = run(path, f"{spelling}=3")
        assert result.returncode == 0, result.stderr
        assert result.stdout.split()[-1] == "3"


@pytest.mark.parametrize("path", SILENT, ids=lambda path: path.stem)
def test_a_script_that_declares_nothing_is_left_alone(path):
    fields = header(path)
    assert fields["expect"] == "nothing"
    assert scan(path) == []
    skip_without(fields)
    if "rejects" not in fields:
        pytest.skip("what the script does with the argument depends on its framework's version")
    for spelling in ("--local_rank", "--local-rank"):
        result = run(path, f"{spelling}=3")
        assert result.returncode != 0, result.stdout
        assert "local" in result.stderr.lower() or "usage" in result.stderr.lower()
