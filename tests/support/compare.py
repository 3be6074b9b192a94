"""The comparison of the two launchers: one scenario, two observations, and the list of wanted differences.

A row of the conformance suite is a function that drives a launcher and says what it saw with `case.see`. It
runs once under real torchrun and once under ddprun, in threads, while pytest walks through the rows. What
differs must be in the table of docs/torchrun-compat.md, and what is in the table must differ.
"""

import concurrent.futures
import functools
import re
import socket
from dataclasses import dataclass

from tests.support.launch import PYTHON, ROOT, Case, Launcher, WarmTorchrun, have_ddprun

TABLE = ROOT / "docs" / "torchrun-compat.md"
CANONICAL = "row_24_a_single_worker_by_default"  # Must show every difference listed for all rows.
# What stands in the report where a worker left no traceback: torch's words and ours.
HINT = "(?:To enable traceback see|no traceback was recorded)"
NOTHING = "<nothing>"  # What is compared where one side saw no such key.


@dataclass(frozen=True)
class Difference:
    """One line of the table: `where` is "<row's test or *>: <key pattern>" or "test: <file>::<name>"."""

    id: str
    where: str
    torchrun: str
    ddprun: str
    reason: str

    @property
    def row(self):
        return self.where.split(":", 1)[0].strip()

    @property
    def key(self):
        return self.where.split(":", 1)[1].strip()

    def covers(self, row, key, torchrun, ddprun):
        return (self.row in (row, "*") and fits(self.key, key)
                and fits_cell(self.torchrun, torchrun) and fits_cell(self.ddprun, ddprun))


def fits(pattern, text):
    """`*` stands for anything; every other character for itself."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


def fits_cell(cell, value):
    """A cell in back-quotes is a pattern for the value, any other one a remark."""
    if cell.startswith("`") and cell.endswith("`"):
        return fits(cell.strip("`"), value)
    return True


@functools.cache
def differences():
    """The table, checked for shape."""
    found = []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if not re.match(r"\| D\d+ ", line):
            continue
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) != 5 or not all(cells) or ":" not in cells[1]:
            raise ValueError(f"{TABLE.name}: a difference needs five filled cells: {line}")
        cells[1] = cells[1].strip("`")
        found.append(Difference(*cells))
    ids = [difference.id for difference in found]
    if len(set(ids)) != len(ids):
        raise ValueError(f"{TABLE.name}: an id stands twice")
    return found


class RowCase(Case):
    """A Case that records what it sees. `want` is the specification's value for it."""

    def __init__(self, launcher, directory):
        super().__init__(launcher, directory)
        self.seen = {}
        self.wanted = {}
        self.left_out = []

    def see(self, key, value, want=None):
        assert key not in self.seen, f"{key} is seen twice"
        self.seen[key] = str(value)
        if want is not None:
            self.wanted[key] = str(want)

    def leave_out(self, key, reason):
        """This machine cannot show `key` (a pattern): differences listed for it are not demanded."""
        self.left_out.append((key, reason))

    def see_exit(self, label, outcome, want=None):
        self.see(label + "exit", outcome.status, want)

    def see_workers(self, label, outcome, want=None):
        """Number, command and arguments of the workers, and every variable that they do not have from us."""
        workers = outcome.workers
        self.see(label + "workers", len(workers), want)
        self.see(label + "command", join(self._command(w["command"]) for w in workers))
        self.see(label + "argv", join(self.mask(" ".join(w["argv"])) for w in workers))
        changed = [self._changed(worker["env"]) for worker in workers]
        for name in sorted(set().union(*changed)):
            self.see(f"{label}env.{name}", join(values.get(name, NOTHING) for values in changed))

    def see_report(self, label, outcome):
        self.see(label + "report", self.report(outcome))

    def want(self, **values):
        """What the specification says of variables seen by see_workers without a label."""
        self.wanted |= {f"env.{name}": str(value) for name, value in values.items()}

    def report(self, outcome):
        """The final report of a failed run, masked, without torch's traceback before it."""
        found = re.search(r"^={10,}$.*^={10,}$", outcome.err, re.DOTALL | re.MULTILINE)
        if found is None:
            return NOTHING
        text = re.sub(r"(?m)^(  host      : ).*$", r"\1<host>", self.mask(found.group(0)))
        text = re.sub(r"\(pid: \d+\)", "(pid: <pid>)", text)
        text = re.sub(r"by PID \d+", "by PID <pid>", text)
        text = re.sub(rf"(?m)^(  traceback : ){HINT}.*$", r"\1<hint>", text)
        return re.sub(r"(?m)^([=-])[=-]+$", r"\1\1\1", text)  # Widths follow the masked lengths.

    def _command(self, command):
        first = "<python>" if command[0] == PYTHON else self.mask(command[0])
        return " ".join([first, *map(self.mask, command[1:])])

    def _changed(self, env):
        """Variables that the launcher set, changed or removed."""
        before = self.last_environment
        changed = {name: self._value(name, value) for name, value in env.items() if before.get(name) != value}
        return changed | {name: "<removed>" for name in before if name not in env}

    def _value(self, name, value):
        value = self.mask(value)
        if name == "MASTER_ADDR" and value == socket.getfqdn() and value != "127.0.0.1":
            return "<fqdn>"
        if name == "MASTER_PORT" and value.isdigit() and value != "29500":
            return "<port>"
        return value

    def environment(self, plan=None, env=None):
        self.last_environment = super().environment(plan, env)
        return self.last_environment


def join(values):
    return " / ".join(values)


def row(function=None, *, slow=False):
    """Makes the test of a row from its scenario. `slow` ones spend their time waiting and start first."""
    if function is None:
        return functools.partial(row, slow=slow)

    def test(comparison):
        comparison.check(test.scenario)

    test.__name__ = function.__name__
    test.__doc__ = function.__doc__
    test.__module__ = function.__module__
    test.scenario = function
    test.slow = slow
    return test


class Comparison:
    """Runs the scenarios of a session ahead of their tests."""

    def __init__(self, directory, threads):
        self._directory = directory
        self._warm = WarmTorchrun(directory)
        self._sides = [Launcher("torchrun", self._warm)]
        if have_ddprun():
            self._sides.append(Launcher("ddprun"))
        self._pool = concurrent.futures.ThreadPoolExecutor(threads)
        self._futures = {}

    def schedule(self, tests):
        for test in sorted(tests, key=lambda t: not t.slow):
            for side in self._sides:
                self._futures[test.scenario, side.name] = self._pool.submit(self._observe, test.scenario, side)

    def _observe(self, scenario, side):
        directory = self._directory / f"{scenario.__name__.removeprefix('test_')}-{side.name}"
        case = RowCase(side, directory)
        try:
            scenario(case)
        finally:
            case.close()
        return case

    def check(self, scenario):
        """The verdict on one row. Real torchrun must do what the specification says; ddprun what torchrun does."""
        torchrun = self._futures[scenario, "torchrun"].result()
        wrong = [f"{key}: real torchrun gives {torchrun.seen.get(key)!r}, the specification {want!r}"
                 for key, want in torchrun.wanted.items() if torchrun.seen.get(key) != want]
        assert not wrong, "\n".join(wrong)
        if (scenario, "ddprun") not in self._futures:
            return False
        ddprun = self._futures[scenario, "ddprun"].result()
        name = scenario.__name__.removeprefix("test_")
        complaints = compare(name, torchrun, ddprun)
        assert not complaints, "\n".join(complaints)
        return True

    def close(self):
        self._pool.shutdown(cancel_futures=True)
        self._warm.close()


def compare(name, torchrun, ddprun):
    """One sentence for each unlisted difference and for each listed one that is not there."""
    complaints = []
    used = set()
    for key in sorted(set(torchrun.seen) | set(ddprun.seen)):
        ours, theirs = ddprun.seen.get(key, NOTHING), torchrun.seen.get(key, NOTHING)
        if ours == theirs:
            continue
        covering = [d for d in differences() if d.covers(name, key, theirs, ours)]
        used.update(covering)
        if not covering:
            complaints.append(f"{name}: {key}: torchrun {theirs!r}, ddprun {ours!r}; not in {TABLE.name}")
    for difference in differences():
        due = difference.row == name or (difference.row == "*" and name == CANONICAL)
        left_out = any(fits(pattern, difference.key) for pattern, _ in ddprun.left_out)
        if due and difference not in used and not left_out:
            complaints.append(f"{name}: {difference.id} of {TABLE.name} ({difference.where}) no longer exists")
    return complaints
