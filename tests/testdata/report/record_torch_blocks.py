"""Writes the expected blocks (*.txt here) with the errors module of an installed torch 2.15.

Run by hand in this folder when a newer torch is taken as the model:  python record_torch_blocks.py
The text that torch prints when there is no traceback is replaced by @NO_TRACEBACK@: ours differs.
"""
import os
import socket
import time

os.environ["TZ"] = "XST-5:30"  # A zone that needs no zone files, unlike UTC.
time.tzset()
socket.getfqdn = lambda *_: "node1.example"

from torch.distributed.elastic.multiprocessing import errors  # noqa: E402

NOW = 1796079510
errors.time.time = lambda: NOW
TORCH_HINT = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"


def failure(local_rank, pid, exitcode, error_file=""):
    return errors.ProcessFailure(local_rank, pid, exitcode, error_file)


CASES = {
    "exit_code": ("exit7.py", {0: (0, 9932, 7)}),
    "signal": ("segv.py", {0: (0, 10090, -11)}),
    "exception_and_stopped_peers": (
        "train.py", {5: (1, 9921, 1, "exception.json"), 4: (0, 9920, -15), 6: (2, 9922, -9)}),
    "two_failures_string": ("two.py", {0: (0, 10100, 3, "string.json"), 1: (1, 10101, 4)}),
    "string_without_time": ("w.py", {0: (0, 1, 1), 1: (1, 2, 4, "string_without_time.json")}),
    "no_callstack": ("n.py", {0: (0, 10111, 3, "no_callstack.json")}),
    "no_text": ("n.py", {0: (0, 10111, 3, "no_text.json")}),
    "unicode": ("\u00e9t\u00e9.py", {0: (0, 7, 3, "unicode.json")}),
    "long_title": ("a" * 70 + ".py", {0: (0, 7, -6)}),
    "ties": ("t.py", {2: (2, 7, 1), 0: (0, 5, -6), 1: (1, 6, 2)}),
}

for name, (title, failures) in CASES.items():
    made = {rank: failure(*arguments) for rank, arguments in failures.items()}
    text = str(errors.ChildFailedError(title, made)).replace(TORCH_HINT, "@NO_TRACEBACK@")
    with open(name + ".txt", "w", encoding="utf-8") as out:
        out.write(text + "\n")
