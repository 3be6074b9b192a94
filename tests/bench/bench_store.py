#!/usr/bin/env python3
"""Compares ddprun's store with torch's own TCPStore server under the same client load.

Run with a Python that has torch, after building the test programs:
    .venv/bin/python tests/bench/bench_store.py [--quick]

Both servers run at the same time, each in its own process, and get the same load in turns, so that
a change of the machine's speed meets both. The load comes from one native process (test_store_load)
that costs the server's core nothing. Processor time is the sum over the server's threads, in
nanoseconds, from /proc/PID/task/*/schedstat. torch's server looks up the name of each peer: it
gets an answer for loopback at once (needs root). All figures are medians; a ratio below 1 is a win.
"""

import argparse
import atexit
import functools
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("DDPRUN_BIN_DIR", ROOT / "build" / "dev" / "bin"))

# torch's server asks the resolver for the name of each peer, which it sees as ::ffff:127.0.0.1.
# Where we may, it gets a hosts file of its own with the answer, so that no resolver is measured.
HOSTS = "127.0.0.1 localhost\n::1 localhost\n::ffff:127.0.0.1 localhost\n"
WITH_HOSTS = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"']

TORCH_SERVER = """
import datetime, sys
from torch.distributed import TCPStore
store = TCPStore("127.0.0.1", 0, None, True, datetime.timedelta(seconds=60), wait_for_workers=False)
print("port", store.port, flush=True)
sys.stdin.read()
"""


class Server:
    """A server process that prints its port and ends with its standard input."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline().split()
        if len(line) != 2:
            sys.exit(f"cannot start {command[0]}")
        self.port = int(line[1])

    def cpu_ns(self):
        total = 0
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
        return total

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)


def start_ours():
    return Server([str(BIN / "test_store_server"), "bind=wildcard"])


@functools.lru_cache(maxsize=None)
def torch_command():
    plain = [sys.executable, "-c", TORCH_SERVER]
    with tempfile.NamedTemporaryFile("w", prefix="hosts", delete=False) as hosts:
        hosts.write(HOSTS)
    atexit.register(os.unlink, hosts.name)
    wrapped = [*WITH_HOSTS, hosts.name]
    if subprocess.run([*wrapped, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        return [*wrapped, *plain]
    print("note: torch's server asks this machine's resolver for the names of its peers")
    return plain


def start_torch():
    return Server(list(torch_command()))


def load(server, operation, clients, count):
    """One load; returns (server processor seconds, wall seconds)."""
    command = [str(BIN / "test_store_load"), str(server.port), operation, str(clients), str(count)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if process.stdout.readline().strip() != "ready":
        sys.exit(f"{operation} with {clients} clients failed")
    before = server.cpu_ns()
    process.stdin.write("\n")
    process.stdin.flush()
    wall = process.stdout.readline()
    cpu = server.cpu_ns() - before
    process.communicate("\n")
    if process.returncode != 0:
        sys.exit(f"{operation} with {clients} clients failed")
    return cpu / 1e9, float(wall)


def alternating(pairs, runs):
    """The pairs again and again; every other time in reverse, so that none is always first."""
    for run in range(runs):
        yield from pairs if run % 2 == 0 else reversed(pairs)


def compare_operations(servers, clients, total, runs):
    count = max(1, total // clients)
    rows = []
    for operation in ("set", "get", "add"):
        samples = [[], []]
        for server, seen in alternating(list(zip(servers, samples)), runs):
            cpu, wall = load(server, operation, clients, count)
            operations = clients * count
            seen.append((cpu / operations * 1e6, wall / operations * 1e6))
        rows += rows_of(f"{operation}, {clients} clients", "us per operation", samples)
    return rows


def compare_barrier(servers, clients, runs):
    samples = [[], []]
    for number, (server, seen) in enumerate(alternating(list(zip(servers, samples)), runs)):
        cpu, wall = load(server, "barrier", clients, clients * 1000 + number)
        seen.append((cpu * 1e3, wall * 1e3))
    return rows_of(f"connect + barrier, {clients} clients", "ms", samples)


def rows_of(name, unit, samples):
    medians = [[statistics.median(values) for values in zip(*seen)] for seen in samples]
    return [(name, f"{quantity}, {unit}", medians[0][i], medians[1][i])
            for i, quantity in enumerate(("server CPU", "wall time"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs")
    quick = parser.parse_args().quick
    servers = [start_ours(), start_torch()]
    rows = []
    for clients in (8, 64):
        rows += compare_operations(servers, clients, 6400 if quick else 12800, 3 if quick else 11)
    for clients in (64, 256, 1024):
        rows += compare_barrier(servers, clients, 1 if quick else 5)
    for server in servers:
        server.close()
    print(f"{'what':34} {'quantity':30} {'ddprun':>10} {'torch':>10} {'ratio':>7}")
    for name, quantity, ours, theirs in rows:
        print(f"{name:34} {quantity:30} {ours:10.2f} {theirs:10.2f} {ours / theirs:7.2f}")


if __name__ == "__main__":
    main()
