"""Workers' output: complete, whole lines, never blocking, whatever the reader and the writers do."""

import os
import re
import subprocess
import threading
import time

import pytest

from tests.support.launch import BIN, PROBE, wait_until

PAIR = "--nproc-per-node=2"


def log_text(case, rank, name="stdout", attempt=0):
    return next((case.dir / "logs").glob(f"*/attempt_{attempt}/{rank}/{name}.log")).read_bytes()


def logs(case):
    return f"--log-dir={case.dir}/logs"


def test_a_reader_that_stalls_does_not_stop_the_job(case):
    read_end, write_end = os.pipe()
    try:
        running = case.start(PAIR, logs(case), "-t", "3", PROBE, stdout=os.fdopen(os.dup(write_end), "wb"),
                             plan="for i in range(50000): print(f'{rank} {i:06d} ' + 'x' * 91)\n"
                                  "sys.stdout.flush(); note('written')\n"
                                  "if rank == 1: wait_event('written', 2); sys.exit(3)\nwait()")
        os.close(write_end)
        outcome = running.wait(60)
    finally:
        os.close(read_end)
    assert outcome.status == 1
    assert "exitcode  : 3" in outcome.err
    for rank in range(2):
        lines = log_text(case, rank).decode().splitlines()
        assert lines == [f"{rank} {i:06d} " + "x" * 91 for i in range(50000)]


def test_a_reader_that_is_gone_does_not_stop_the_job(case):
    read_end, write_end = os.pipe()
    running = case.start(logs(case), "-t", "3", PROBE, stdout=os.fdopen(write_end, "wb"),
                         plan="for i in range(5000): print(i)\nsys.stdout.flush(); note('end')")
    os.close(read_end)
    assert running.wait().status == 0
    assert log_text(case, 0).decode().split() == [str(i) for i in range(5000)]


@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_the_last_lines_before_an_abort_are_there(case, soak, kind):
    plan = ("import faulthandler; faulthandler.disable()\n"
            "for i in range(20000): print('line', i)\nsys.stdout.flush(); die('SIGABRT')")
    for round_ in range(50 if soak else 5):
        if kind == "file":
            out = case.run("-t", "3", PROBE, plan=plan).out
        else:
            out = run_into_pipe(case, "-t", "3", PROBE, plan=plan)
        assert out.splitlines() == [f"[default0]:line {i}" for i in range(20000)], f"round {round_}"


def run_into_pipe(case, *args, plan):
    read_end, write_end = os.pipe()
    chunks = []

    def read():
        with os.fdopen(read_end, "rb") as file:
            chunks.append(file.read())

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(write_end, "wb") as stdout:
        running = case.start(*args, plan=plan, stdout=stdout)
    running.wait()
    reader.join(10)
    return b"".join(chunks).decode()


def test_lines_of_four_ranks_stay_whole(case):
    plan = "for i in range(1000): sys.stdout.write(f'{rank} {i} ' + 'abcdefghij' * 20 + chr(10)); sys.stdout.flush()"
    outcome = case.run("--nproc-per-node=4", "-t", "3", PROBE, plan=plan)
    seen = {rank: [] for rank in range(4)}
    for line in outcome.out.splitlines():
        match = re.fullmatch(r"\[default(\d)\]:(\d) (\d+) (?:abcdefghij){20}", line)
        assert match and match[1] == match[2], line
        seen[int(match[1])].append(int(match[3]))
    assert seen == {rank: list(range(1000)) for rank in range(4)}


def test_a_line_written_in_pieces_is_one_line(case):
    plan = ("note('go'); wait_event('go', 2)\nfor piece in 'a', 'b', 'c' + chr(10):\n"
            "  sys.stdout.write(piece); sys.stdout.flush(); time.sleep(0.15)")
    outcome = case.run(PAIR, "-t", "3", PROBE, plan=plan)
    assert sorted(outcome.out.splitlines()) == ["[default0]:abc", "[default1]:abc"]


def test_ranks_of_two_digits_have_their_prefix(case):
    outcome = case.run("--nproc-per-node=12", "-t", "3", PROBE, plan="print('me', rank)")
    assert sorted(outcome.out.splitlines()) == sorted(f"[default{r}]:me {r}" for r in range(12))


def test_a_progress_bar_into_a_pipe(case):
    """The file keeps every byte; the console gets at most one update per second and rank."""
    plan = ("for i in range(50): sys.stdout.write(f'\\r{i + 1}/50'); sys.stdout.flush(); time.sleep(0.03)\n"
            "sys.stdout.write(chr(10))")
    outcome = case.run(logs(case), "-t", "3", PROBE, plan=plan)
    expected = b"".join(b"\r%d/50" % (i + 1) for i in range(50)) + b"\n"
    assert log_text(case, 0) == expected
    lines = [line for line in re.split(r"[\r\n]+", outcome.out) if line]
    assert len(lines) <= 5, lines
    assert lines[-1] == "[default0]:50/50"


def test_a_prompt_without_newline_shows_within_a_second(case):
    arrival = arrivals(case, "sys.stdout.write('question? '); sys.stdout.flush(); note('asked'); time.sleep(2)",
                       b"question?")
    assert arrival - case.events("asked")[0]["t"] < 1.5


def test_a_line_shows_within_a_third_of_a_second(case):
    arrival = arrivals(case, "print('hello', flush=True); note('asked'); time.sleep(1)", b"hello")
    assert arrival - case.events("asked")[0]["t"] < 0.3


def arrivals(case, plan, wanted):
    """When `wanted` came out of the launcher's stdout, a pipe."""
    read_end, write_end = os.pipe()
    with os.fdopen(write_end, "wb") as stdout:
        running = case.start("-t", "3", PROBE, plan=plan, stdout=stdout)
    text, arrival = b"", None
    with os.fdopen(read_end, "rb", 0) as pipe:
        while chunk := pipe.read(4096):
            text += chunk
            if arrival is None and wanted in text:
                arrival = time.monotonic()
    running.wait()
    assert arrival is not None, text
    return arrival


def test_any_bytes_survive(case):
    plan = ("data = bytes(b for b in range(256) if b not in (10, 13)) + chr(10).encode()\n"
            "os.write(1, data); os.write(1, b'no newline at the end')")
    outcome = case.run(logs(case), "-t", "3", PROBE, plan=plan)
    assert outcome.status == 0
    raw = (case.dir / "out.1").read_bytes()
    data = bytes(b for b in range(256) if b not in (10, 13))
    assert log_text(case, 0) == data + b"\nno newline at the end"
    assert raw.startswith(b"[default0]:") and raw.rstrip(b"\n").endswith(b"[default0]:no newline at the end")


def test_a_line_of_100_megabytes(case):
    plan = "block = b'y' * (1 << 20)\nfor _ in range(100): os.write(1, block)\nos.write(1, chr(10).encode())"
    outcome = case.run(logs(case), "-t", "3", PROBE, plan=plan)
    assert outcome.status == 0
    assert len(log_text(case, 0)) == (100 << 20) + 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")
def test_a_full_disk(case):
    """The console goes on, the launcher says what it lost and ends with the workers' status."""
    disk = case.dir / "disk"
    disk.mkdir()
    mount = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size=256k none {disk} && exec "$@"', "sh"]
    outcome = case.run(f"--log-dir={disk}", "-t", "3", PROBE, before=mount,
                       plan="for i in range(60000): print('line', i)")
    assert outcome.status == 0, outcome.err[-2000:]
    assert outcome.out.splitlines()[-1] == "[default0]:line 59999"
    assert "o space left" in outcome.err


def test_a_grandchild_that_holds_the_pipe_open_does_not_keep_the_launcher(case):
    plan = "print('said', flush=True); subprocess.Popen(['sleep', '60'], start_new_session=True)"
    outcome = case.run("--shutdown-timeout=1", "-t", "3", PROBE, plan=plan, timeout=20)
    assert outcome.status == 0
    assert outcome.out == "[default0]:said\n"
    wait_until(lambda: not case.processes())


def test_nothing_is_left_without_redirects(case):
    for args in ([], ["--nproc-per-node=2"], ["--max-restarts=1"]):
        assert case.run(*args, PROBE).status == 0
    assert list(case.tmp.iterdir()) == []


def test_where_the_logs_are_is_told(case):
    outcome = case.run(PAIR, logs(case), "-r", "3", PROBE, plan="if rank == 1: raise ValueError('boom')")
    assert outcome.status == 1
    tail = outcome.err.splitlines()[-30:]
    assert any("boom" in line for line in tail), outcome.err
    assert any(f"{case.dir}/logs" in line and "stderr.log" in line for line in tail), outcome.err


def test_an_exception_without_record_is_in_the_report(case):
    outcome = case.run(PAIR, "-t", "3", PROBE, plan="if rank == 1: raise ValueError('boom')\nwait(20)")
    assert outcome.status == 1
    report = outcome.err[outcome.err.index("Root Cause"):]
    assert "ValueError: boom" in report


def test_the_newest_attempt_has_a_link(case):
    case.run(logs(case), "--max-restarts=1", "-r", "3", PROBE, plan="print(restart); sys.exit(1 - restart)")
    links = [p for p in (case.dir / "logs").rglob("latest") if p.is_symlink()]
    assert len(links) == 1
    assert links[0].resolve().name == "attempt_1"


def test_two_jobs_with_one_log_folder(case):
    for _ in range(2):
        case.run(logs(case), f"--master-port={case.port()}", "-r", "3", PROBE, plan="print(os.getpid())")
    assert len(list((case.dir / "logs").glob("none_*/attempt_0/0/stdout.log"))) == 2


def test_output_under_tee_reaches_a_person_through_another_program(case):
    """`ddprun ... | cat` in a shell: nothing is held back at the end."""
    done = subprocess.run(["sh", "-c", f"{BIN / 'ddprun'} -t 3 {PROBE} | cat"], capture_output=True, text=True,
                          env=case.environment("print('through')"), cwd=case.dir, timeout=30, check=False)
    assert done.stdout == "[default0]:through\n"
    wait_until(lambda: not case.processes())
