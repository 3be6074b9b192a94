"""How long launches, restarts and stops take, and what the launcher costs meanwhile; against real torchrun.

    .venv/bin/python tests/bench/bench_launch.py [--quick] [--json FILE]

Fair figures: torchrun's bytecode is compiled first, the launchers alternate, every event comes after a random
pause (a fixed one keeps step with a poller), medians count. Workers are a static C++ program that writes
CLOCK_MONOTONIC, so that no interpreter is measured. When the host name does not resolve, torchrun gets one
that does.
"""

import argparse
import contextlib
import json
import os
import pty
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from tests.support.launch import BIN, PYTHON, Case, Launcher, have_ddprun, wait_until  # noqa: E402

WORKER = Path(__file__).with_name("bench_worker.cc")
MS = 1000.0


class BareFork:
    """The floor: fork and exec of the same workers by a small static program, with no launcher."""

    name = "fork+exec"

    def __init__(self, worker):
        self._worker = worker

    def command(self, _form):
        return [str(self._worker), "spawn"]


def compile_worker(folder):
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        sys.exit("bench_launch: no C++ compiler for the worker")
    binary = folder / "bench_worker"
    subprocess.run([compiler, "-O2", "-std=c++17", "-static", "-o", binary, WORKER], check=True)
    return binary


class Bench:
    """The measurements of one launcher. Every method gives seconds (or what it says) of one round."""

    def __init__(self, launcher, folder, worker):
        self.launcher = launcher
        self.worker = str(worker)
        self._folder = folder
        self._number = 0

    @contextlib.contextmanager
    def case(self):
        self._number += 1
        case = Case(self.launcher, self._folder / f"{self.launcher.name}-{self._number}")
        try:
            yield case
        finally:
            case.close()
            shutil.rmtree(case.dir, ignore_errors=True)

    def start(self, case, workers, mode, *options):
        time.sleep(random.uniform(0.0, 0.1))
        if isinstance(self.launcher, BareFork):
            return case.start(workers, self.worker, mode)
        return case.start("--no-python", f"--nproc-per-node={workers}", *options, self.worker, mode)

    # -- one round each

    def launch(self, workers):
        """Launcher entered to the first instruction of the last worker."""
        with self.case() as case:
            running = self.start(case, workers, "stamp")
            running.wait()
            stamps = times(case, "start")
            assert len(stamps) == workers, stamps
            return max(stamps) - running.started

    def launch_and_end(self):
        """Last worker exits to launcher gone, after a random life of the worker."""
        with self.case() as case:
            running = self.start(case, 1, f"sleep:{random.uniform(0.2, 0.5):.3f}")
            outcome = running.wait()
            return running.started + outcome.seconds - times(case, "end")[0]

    def restart(self, workers):
        """A worker dies to all workers of the next attempt exec'ed; they obey SIGTERM."""
        with self.case() as case:
            running = self.start(case, workers, "restart", "--max-restarts=1")
            wait_lines(case, running, "start", workers)
            time.sleep(random.uniform(0.2, 0.4))
            victim = pids(case)[-1]
            died = time.monotonic()
            os.kill(victim, signal.SIGKILL)
            running.wait()
            return max(times(case, "again")) - died

    def peer_stop(self):
        """A worker fails to SIGTERM at its peer."""
        with self.case() as case:
            running = self.start(case, 2, "wait")
            wait_lines(case, running, "start", 2)
            time.sleep(random.uniform(0.2, 0.4))
            died = time.monotonic()
            os.kill(pids(case)[-1], signal.SIGKILL)
            running.wait()
            return times(case, "term")[0] - died

    def footprint(self, seconds):
        """Of the launcher alone while two workers idle: resident KiB, CPU share, wake-ups per second."""
        with self.case() as case:
            running = self.start(case, 2, "wait")
            wait_lines(case, running, "start", 2)
            time.sleep(1.0)
            before = usage(running.pid)
            time.sleep(seconds)
            after = usage(running.pid)
            memory = int(status_field(running.pid, "VmRSS").split()[0])
            running.send("SIGTERM")
            running.wait()
            return memory, (after[0] - before[0]) / seconds, (after[1] - before[1]) / seconds

    def tee(self, kind, megabytes):
        """Bytes per second that four workers get through tee, with 100-byte lines."""
        with self.case() as case:
            with sink(kind, case) as stdout:
                running = case.start("--no-python", "--nproc-per-node=4", "-t", "1", f"--log-dir={case.dir}/logs",
                                     self.worker, f"lines:{megabytes * 10000 // 4}", stdout=stdout)
                outcome = running.wait(600)
            spent = running.started + outcome.seconds - min(times(case, "start"))
            return megabytes * 1e6 / spent


@contextlib.contextmanager
def sink(kind, case):
    """Where the launcher's stdout goes: a file, or a pipe or a terminal that another process reads."""
    if kind == "file":
        with open(case.dir / "tee.out", "wb") as file:
            yield file
        return
    if kind == "terminal":
        master, slave = pty.openpty()
        reader = subprocess.Popen(["cat"], stdin=master, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(master)
        with os.fdopen(slave, "wb") as file:
            yield file
        reader.wait()
        return
    reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        yield reader.stdin
    finally:
        reader.stdin.close()
        reader.wait()


def lines(case):
    with contextlib.suppress(FileNotFoundError):
        return [line.split() for line in (case.dir / "stamps").read_text().splitlines()]
    return []


def times(case, event):
    return [float(when) for name, when, _ in lines(case) if name == event]


def pids(case):
    return [int(pid) for name, _, pid in lines(case) if name == "start"]


def wait_lines(case, running, event, count):
    wait_until(lambda: len(times(case, event)) >= count or not running.alive(), 60)


def status_field(pid, name):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return line.split(":", 1)[1].strip()
    return "0"


def usage(pid):
    """CPU seconds and context switches of all threads of a process."""
    cpu, switches = 0.0, 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        fields = (task / "schedstat").read_text().split()
        cpu += int(fields[0]) / 1e9
        for line in (task / "status").read_text().splitlines():
            if "ctxt_switches" in line:
                switches += int(line.split()[-1])
    return cpu, switches


def alternate(benches, rounds, measure):
    """{launcher name: median of `measure(bench)`}, the launchers taking turns."""
    results = {bench.launcher.name: [] for bench in benches}
    for _ in range(rounds):
        for bench in benches:
            results[bench.launcher.name].append(measure(bench))
    return {name: statistics.median(values) for name, values in results.items()}


def measure_all(benches, bare, rounds, quick):
    """The table: (row, unit, limit in words, {name: value}). `benches` are the two launchers."""
    table = []

    def row(name, unit, limit, values, scale=1.0):
        table.append((name, unit, limit, {k: v * scale for k, v in values.items()}))
        print(f"  measured: {name}", file=sys.stderr, flush=True)

    for workers, limit in ((1, "fork+exec + 15 ms"), (8, "fork+exec + 30 ms")):
        row(f"launcher entered -> first instruction, {workers} worker{'s' * (workers > 1)}", "ms", limit,
            alternate([*benches, bare], rounds, lambda b, n=workers: b.launch(n)), MS)
    row("worker dies -> 2 workers exec'ed again", "ms", "30 ms", alternate(benches, rounds, lambda b: b.restart(2)), MS)
    row("last worker exits -> launcher gone", "ms", "5 ms", alternate(benches, rounds, Bench.launch_and_end), MS)
    row("worker fails -> SIGTERM at its peer", "ms", "5 ms", alternate(benches, rounds, Bench.peer_stop), MS)
    seconds = 3 if quick else 20
    prints = {b.launcher.name: b.footprint(seconds) for b in benches}
    row("resident memory while workers run", "MB", "20 MB", {n: p[0] / 1024 for n, p in prints.items()})
    row("CPU while workers run", "% of a core", "0.05 %", {n: 100 * p[1] for n, p in prints.items()})
    row("wake-ups while workers run", "per second", "1", {n: p[2] for n, p in prints.items()})
    megabytes = 20 if quick else 200
    for kind in ("file", "pipe", "terminal"):
        row(f"tee of 4 workers to a {kind}", "MB/s", "300 MB/s",
            alternate(benches, 1 if quick else 3, lambda b, k=kind: b.tee(k, megabytes)), 1e-6)
    return table


def ratio(values, unit):
    """ddprun's part of torchrun's value; above 1 is better where more is better."""
    if not {"torchrun", "ddprun"} <= values.keys() or not values["torchrun"] or not values["ddprun"]:
        return "-"
    quotient = values["ddprun"] / values["torchrun"]
    return f"{quotient:.2f} x" if unit == "MB/s" else f"1/{1 / quotient:.0f}" if quotient < 0.5 else f"{quotient:.2f}"


def show(table):
    print(f"{'':52} {'ddprun':>9} {'torchrun':>9} {'bare':>7}  {'unit':11} {'ratio':>7}  limit")
    for name, unit, limit, values in table:
        cells = [f"{values[k]:.{1 if values[k] >= 1 else 3}f}" if k in values else "-"
                 for k in ("ddprun", "torchrun", "fork+exec")]
        print(f"{name:52} {cells[0]:>9} {cells[1]:>9} {cells[2]:>7}  {unit:11} {ratio(values, unit):>7}  {limit}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds, below one minute")
    parser.add_argument("--rounds", type=int, help="rounds per row (default 15, with --quick 3)")
    parser.add_argument("--json", metavar="FILE", help="write the numbers there, too")
    parser.add_argument("--only", choices=["ddprun", "torchrun"], help="measure one launcher")
    arguments = parser.parse_args()
    if not have_ddprun() and arguments.only != "torchrun":
        sys.exit(f"bench_launch: {BIN / 'ddprun'} is not built")
    subprocess.run([PYTHON, "-m", "compileall", "-q", "-j", "0", compiled_folder()], check=False,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory(prefix="ddprun-bench-") as name:
        folder = Path(name)
        worker = compile_worker(folder)
        names = [arguments.only] if arguments.only else ["ddprun", "torchrun"]
        benches = [Bench(Launcher(n), folder, worker) for n in names]
        bare = Bench(BareFork(worker), folder, worker)
        table = measure_all(benches, bare, arguments.rounds or (3 if arguments.quick else 15), arguments.quick)
    show(table)
    if arguments.json:
        rows = [dict(zip(("row", "unit", "limit", "values"), entry)) for entry in table]
        Path(arguments.json).write_text(json.dumps(rows, indent=2) + "\n")


def compiled_folder():
    """The package whose bytecode torchrun loads at its start."""
    return subprocess.run([PYTHON, "-c", "import importlib.util as u; print(u.find_spec('torch').submodule_search_"
                           "locations[0] + '/distributed')"], capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
