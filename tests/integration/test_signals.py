"""Signals to the launcher, at every moment and by every way that people send them."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

from tests.support.launch import BIN, PROBE, SAFETY, wait_until

PAIR = "--nproc-per-node=2"
STAY = "on_signals('SIGTERM', 'SIGINT', 'SIGHUP', status=0); note('ready'); wait()"
STUBBORN = "on_signals('SIGTERM', 'SIGINT'); note('ready'); wait()"


def state_of(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    return "gone"


class Terminal:
    """An interactive shell on a pseudo terminal, as a person has it."""

    def __init__(self, case, plan):
        self.case = case
        master, slave = pty.openpty()
        self.fd = master
        self.text = ""
        self.shell = subprocess.Popen(
            ["setsid", "--ctty", "bash", "--norc", "--noprofile", "-i"], stdin=slave, stdout=slave, stderr=slave,
            env=case.environment(plan, {"PS1": "PROMPT> ", "TERM": "dumb"}), cwd=case.dir)
        os.close(slave)

    def type(self, text):
        os.write(self.fd, text.encode())

    def read(self):
        with contextlib.suppress(OSError):
            while self.fd >= 0 and select.select([self.fd], [], [], 0)[0]:
                self.text += os.read(self.fd, 4096).decode(errors="replace")
        return self.text

    def wait_text(self, wanted, timeout=SAFETY):
        wait_until(lambda: wanted in self.read(), timeout, f"{wanted!r} on the terminal", lambda: self.text)

    def wait_event(self, event, count):
        wait_until(lambda: self.read() is not None and len(self.case.events(event)) >= count, 30,
                   f"{count} times {event!r}", lambda: self.text)

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def launcher(self):
        return next(pid for pid, command in self.case.processes().items() if command.startswith(str(BIN)))


@pytest.fixture
def terminal(case):
    opened = []

    def open_terminal(plan):
        opened.append(Terminal(case, plan))
        return opened[-1]

    yield open_terminal
    for each in opened:
        each.close()
        each.shell.kill()
        each.shell.wait()


@pytest.mark.parametrize("name", ["SIGUSR1", "SIGUSR2"])
def test_warning_signals_are_passed_on_and_the_job_goes_on(case, name):
    running = case.start(PAIR, PROBE, plan=f"on_signals({name!r}); note('ready'); wait_event('signal', 2)")
    running.wait_event("ready", 2)
    running.send(name)
    assert running.wait().status == 0
    assert sorted((e["rank"], e["value"]) for e in case.events("signal")) == [(0, name), (1, name)]


def test_a_second_signal_ends_the_grace_at_once(case):
    running = case.start(PAIR, PROBE, plan=STUBBORN)
    running.wait_event("ready", 2)
    running.send("SIGTERM")
    running.wait_event("signal", 2)
    running.send("SIGTERM")
    outcome = running.wait(10)
    assert outcome.status == 1
    case.assert_nothing_left()


@pytest.mark.parametrize("count", [3, 10])
def test_more_signals_never_abandon_a_worker(case, count):
    running = case.start(PAIR, PROBE, plan="grandchild(new_session=True); " + STUBBORN)
    running.wait_event("ready", 2)
    running.send("SIGTERM")
    running.wait_event("signal", 2)  # Signals that are sent in one breath are one signal.
    for _ in range(count - 1):
        with contextlib.suppress(ProcessLookupError):
            running.send("SIGTERM")
    assert running.wait(10).status == 1
    case.assert_nothing_left()


def test_the_grace_is_the_same_for_a_peer_failure_and_a_restart(case):
    plan = ("if rank == 1 and restart == 0: wait_event('ready'); sys.exit(1)\n"
            "if restart == 1: sys.exit(0)\n" + STUBBORN)
    outcome = case.run(PAIR, "--shutdown-timeout=1", "--max-restarts=1", PROBE, plan=plan)
    assert outcome.status == 0, outcome
    assert outcome.seconds < 10
    outcome = case.run(PAIR, "--shutdown-timeout=1", PROBE, plan=plan)
    assert outcome.status == 1
    assert outcome.seconds < 10


def test_a_worker_may_use_its_grace_to_save(case):
    running = case.start("--shutdown-timeout=20", PROBE,
                         plan="def save(*_):\n  time.sleep(1); note('saved'); os._exit(0)\n"
                              "signal.signal(signal.SIGTERM, save); note('ready'); wait()")
    running.wait_event("ready")
    running.send("SIGTERM")
    assert running.wait().status == 1
    assert len(case.events("saved")) == 1


def test_a_stop_is_told_in_few_lines_without_a_stack(case):
    running = case.start(PAIR, PROBE, plan=STAY)
    running.wait_event("ready", 2)
    running.send("SIGTERM")
    outcome = running.wait()
    assert "Traceback" not in outcome.err
    assert "SIGTERM" in outcome.err
    assert len(outcome.err.splitlines()) <= 10, outcome.err


def test_nohup_protects_the_job(case):
    running = case.start(PAIR, PROBE, plan="note('ready'); wait_event('go')", before=["nohup"])
    running.wait_event("ready", 2)
    for pid in [running.pid] + [w["pid"] for w in case.workers()]:
        os.kill(pid, signal.SIGHUP)
    os.killpg(running.pid, signal.SIGHUP)
    assert running.alive()
    with open(case.dir / "events", "a", encoding="utf-8") as events:
        events.write('{"rank": 0, "restart": 0, "event": "go", "t": 0}\n')
    assert running.wait().status == 0


def test_a_hang_up_without_nohup_stops_the_job(case):
    running = case.start(PAIR, PROBE, plan=STAY)
    running.wait_event("ready", 2)
    running.send("SIGHUP")
    outcome = running.wait()
    assert outcome.status == 1
    assert [e["value"] for e in case.events("signal")] == ["SIGHUP", "SIGHUP"]
    assert "SIGHUP" in outcome.err
    case.assert_nothing_left()


def test_an_interrupt_that_a_background_job_ignores_stays_ignored(case):
    running = case.start(PROBE, plan="note('ready'); wait_event('go')",
                         before=["sh", "-c", 'trap "" INT; exec "$@"', "sh"])
    running.wait_event("ready")
    running.send("SIGINT")
    running.send("SIGTERM")
    outcome = running.wait()
    assert outcome.status == 1
    assert "SIGTERM" in outcome.err and "SIGINT" not in outcome.err


def test_signals_from_the_first_instruction_on(case):
    """Before workers exist the launcher dies as by the signal, later it stops in order; nothing is ever left."""
    seen = set()
    for moment in range(40):
        running = case.start(PAIR, PROBE, plan=STAY)
        time.sleep(moment * 0.0005)  # The moment is what varies, nothing is waited for.
        running.send("SIGTERM")
        seen.add(running.wait(20).status)
        case.assert_nothing_left()
    assert seen <= {143, 1}, seen


def test_ctrl_c_stops_the_job(case, terminal):
    shell = terminal(STAY)
    shell.type(f"{BIN / 'ddprun'} {PAIR} {PROBE}; echo status=$?\n")
    shell.wait_event("ready", 2)
    shell.type("\x03")
    shell.wait_text("PROMPT> ", 20)
    shell.wait_event("signal", 2)
    assert {e["value"] for e in case.events("signal")} == {"SIGINT"}
    wait_until(lambda: len(case.processes()) == 1, what="the end of all but the shell",
               state=lambda: str(case.processes()))


def test_ctrl_z_and_fg(case, terminal):
    shell = terminal("note('ready'); wait_event('go', 2)")
    shell.type(f"{BIN / 'ddprun'} {PAIR} {PROBE}; echo status=$?\n")
    shell.wait_event("ready", 2)
    launcher = shell.launcher()
    pids = [launcher] + [w["pid"] for w in case.workers()]
    shell.type("\x1a")
    wait_until(lambda: [state_of(pid) for pid in pids] == ["T"] * 3, what="launcher and workers to stop",
               state=lambda: str([state_of(pid) for pid in pids]) + shell.read())
    shell.wait_text("Stopped")
    shell.type("fg\n")
    wait_until(lambda: "T" not in [state_of(pid) for pid in pids], what="all to go on",
               state=lambda: str([state_of(pid) for pid in pids]) + shell.read())
    with open(case.dir / "events", "a", encoding="utf-8") as events:
        events.write('{"rank": 0, "restart": 0, "event": "go", "t": 0}\n' * 2)
    wait_until(lambda: state_of(launcher) == "gone", what="the end of the job", state=shell.read)
    shell.type("echo st''atus=$?\n")
    shell.wait_text("status=0")


def test_a_terminal_resize_reaches_the_workers(case, terminal):
    shell = terminal("signal.signal(signal.SIGWINCH, lambda *_: note('size', list(os.get_terminal_size(1))))\n"
                     "note('ready'); wait_event('size', 2)")
    shell.type(f"{BIN / 'ddprun'} {PAIR} {PROBE}; echo st''atus=$?\n")
    shell.wait_event("ready", 2)
    fcntl.ioctl(shell.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
    shell.wait_event("size", 2)
    assert [e["value"] for e in case.events("size")][:2] == [[99, 33], [99, 33]]
    shell.wait_text("status=0")


def test_a_closed_terminal_stops_the_job(case, terminal):
    shell = terminal(STAY)
    shell.type(f"{BIN / 'ddprun'} {PAIR} {PROBE}\n")
    shell.wait_event("ready", 2)
    shell.close()
    wait_until(lambda: not case.processes(), 20, "the end of all processes", lambda: str(case.processes()))
    assert {e["value"] for e in case.events("signal")} == {"SIGHUP"}


def test_one_signal_to_the_whole_group_is_one_stop(case):
    """A scheduler signals every process of the step: the worker must not get the grace cut by its copy."""
    running = case.start("--shutdown-timeout=20", PROBE,
                         plan="def save(*_):\n  time.sleep(1); note('saved'); os._exit(0)\n"
                              "signal.signal(signal.SIGTERM, save); note('ready'); wait()")
    running.wait_event("ready")
    os.killpg(running.pid, signal.SIGTERM)
    os.kill(case.workers()[0]["pid"], signal.SIGTERM)
    assert running.wait().status == 1
    assert len(case.events("saved")) >= 1
