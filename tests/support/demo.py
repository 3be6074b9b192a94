"""What `./dev demo` shows: two workers train a model, one is killed, the group goes on from its checkpoint.

Everything the launcher prints is shown as it comes. The status is 0 only when all of this was seen: a falling
loss, the kill, the restart from a checkpoint, the last step, and the launcher's own status 0.
"""

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "docs" / "examples" / "train_ddp.py"
STEPS = 200
KILL_AFTER = 80  # The step whose line triggers the kill of rank 1.


def default_launcher():
    folder = os.environ.get("DDPRUN_BIN_DIR", ROOT / "build" / "release" / "bin")
    return [str(Path(folder) / "ddprun")]


class Watcher:
    """Reads the job's lines, kills rank 1 once, and remembers what it saw."""

    def __init__(self):
        self.losses = []
        self.starts = []  # (rank, attempt, first step)
        self.victim = None
        self.killed = False

    def see(self, line):
        if found := re.search(r"rank (\d+) of \d+, pid (\d+), attempt (\d+): starts at step (\d+)", line):
            rank, pid, attempt, step = map(int, found.groups())
            self.starts.append((rank, attempt, step))
            if rank == 1 and attempt == 0:
                self.victim = pid
        if found := re.search(r"step +(\d+) of \d+  loss ([0-9.]+)", line):
            self.losses.append((int(found[1]), float(found[2])))
            if self.losses[-1][0] >= KILL_AFTER and not self.killed and self.victim is not None:
                self.killed = True
                print(f"demo: killing rank 1 (pid {self.victim})", flush=True)
                os.kill(self.victim, signal.SIGKILL)

    def complaints(self):
        resumed = [step for _, attempt, step in self.starts if attempt == 1]
        checks = [
            (self.killed, "rank 1 was not killed"),
            (len(resumed) == 2 and min(resumed, default=0) > 0, "the group was not started again from a checkpoint"),
            (bool(self.losses) and self.losses[-1][0] == STEPS, "the last step was not reached"),
            (bool(self.losses) and self.losses[-1][1] < 0.5 * self.losses[0][1], "the loss did not fall"),
        ]
        return [text for good, text in checks if not good]


def run(launcher, folder):
    command = [*launcher, "--nproc-per-node=2", "--max-restarts=1", str(SCRIPT), f"--steps={STEPS}", "--pause=0.005",
               f"--checkpoint={folder}/model.pt"]
    print("demo:", " ".join(command), flush=True)
    environment = dict(os.environ, VIRTUAL_ENV=str(Path(sys.executable).parent.parent))
    watcher = Watcher()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace", env=environment) as job:
        for line in job.stdout:
            print(line, end="", flush=True)
            watcher.see(line)
        status = job.wait()
    return status, watcher


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--launcher", type=shlex.split, default=default_launcher(), help="another command")
    arguments = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ddprun-demo-") as folder:
        status, watcher = run(arguments.launcher, folder)
    complaints = watcher.complaints() + ([f"the launcher's status is {status}"] if status else [])
    for complaint in complaints:
        print(f"demo: {complaint}", file=sys.stderr)
    if not complaints:
        first, last = watcher.losses[0], watcher.losses[-1]
        print(f"demo: the loss fell from {first[1]:.3f} to {last[1]:.3f}, through a kill and a restart, in "
              f"{time.monotonic() - started:.1f} s")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
