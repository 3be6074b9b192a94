"""The tables of the documentation name tests that exist."""

import re

from tests.support.compare import differences
from tests.support.launch import ROOT, TESTS

TESTING = ROOT / "docs" / "testing.md"


def defined(path):
    return set(re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE))


def conformance_tests():
    return set().union(*(defined(path) for path in (TESTS / "conformance").glob("test_*.py")))


def test_every_case_names_a_test_or_a_reason():
    missing = []
    for line in TESTING.read_text().splitlines():
        if not re.match(r"\| \d", line):
            continue
        cell = line.split("|")[3]
        assert cell.strip(), line
        file = None
        for token in re.findall(r"`([^`]*)`", cell):
            if found := re.fullmatch(r"(\w+\.py)?(?:::(test_\w+))?", token):
                file = found[1] or file
                path = TESTS / "integration" / (file or "")
                if not path.is_file() or (found[2] and found[2] not in defined(path)):
                    missing.append(token)
            elif found := re.fullmatch(r"(?:conformance: )?(test_row_\w+)\*?", token):
                if not any(name.startswith(found[1]) for name in conformance_tests()):
                    missing.append(token)
            elif token.startswith("tests/") and not (ROOT / token).exists():
                missing.append(token)
    assert missing == []


def test_every_difference_is_checked_by_a_row_or_a_named_test():
    rows = {name.removeprefix("test_") for name in conformance_tests()}
    wrong = []
    for difference in differences():
        if difference.row == "test":
            path, _, name = difference.key.partition("::")
            good = (ROOT / path).is_file() and name in (ROOT / path).read_text()
        else:
            good = difference.row == "*" or difference.row in rows
        if not good:
            wrong.append(f"{difference.id}: {difference.where}")
    assert wrong == []
