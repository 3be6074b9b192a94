"""Failure reports, error files and exit statuses, as people meet them."""

import json
import os

import pytest

from tests.support.launch import PROBE, link_as

PAIR = "--nproc-per-node=2"


def leave(text, status=3):
    return f"open(os.environ['TORCHELASTIC_ERROR_FILE'], 'wb').write({text!r}); sys.exit({status})"


@pytest.mark.parametrize(("name", "plan"), [
    ("half", leave(b'{"message": {"mess')),
    ("invalid UTF-8", leave(b'\xff\xfe{"message": "x"}')),
    ("not an object", leave(b"[1, 2]")),
    ("no message", leave(b'{"other": 1}')),
    ("empty", leave(b"")),
    ("50 MB", "open(os.environ['TORCHELASTIC_ERROR_FILE'], 'wb').write(b'z' * (50 << 20)); sys.exit(3)"),
    ("fifo", "os.mkfifo(os.environ['TORCHELASTIC_ERROR_FILE']); sys.exit(3)"),
    ("folder", "os.mkdir(os.environ['TORCHELASTIC_ERROR_FILE']); sys.exit(3)"),
    ("unreadable", "os.symlink('/proc/self/mem', os.environ['TORCHELASTIC_ERROR_FILE']); sys.exit(3)"),
    ("dangling link", "os.symlink('/no/such', os.environ['TORCHELASTIC_ERROR_FILE']); sys.exit(3)"),
    ("deep", leave(b'{"message": ' + b"[" * 100000)),
])
def test_no_error_file_breaks_the_report(case, name, plan):
    outcome = case.run(PROBE, plan="note('end')\n" + plan, timeout=20)
    assert outcome.status == 1, outcome
    assert "exitcode  : 3 (pid: " in outcome.err, name
    assert len(outcome.err) < 200_000
    assert "Traceback" not in outcome.err


def test_text_in_an_error_file_is_used_as_it_is(case):
    outcome = case.run(PROBE, plan=leave(b"plain words of the worker"))
    assert "plain words of the worker" in outcome.err


def test_no_stack_of_the_launcher(case):
    outcome = case.run(PAIR, PROBE, plan="if rank == 1: sys.exit(42)\nwait(20)")
    assert outcome.status == 1
    assert "Traceback" not in outcome.err and "ChildFailedError" not in outcome.err
    assert "exitcode  : 42" in outcome.err


def test_a_sigkill_that_is_not_ours_is_said(case):
    outcome = case.run(PROBE, plan="die('SIGKILL')")
    assert outcome.status == 1
    after = outcome.err[outcome.err.index("Root Cause"):]
    assert "SIGKILL" in after
    assert "not" in after, "nothing says that the launcher did not send it"


def test_a_crash_leaves_the_python_stack(case):
    """The fault handler is on for workers unless the user has set it."""
    outcome = case.run("-t", "3", PROBE, plan="def crash_here():\n  import ctypes; ctypes.string_at(0)\ncrash_here()")
    assert outcome.status == 1
    assert "crash_here" in outcome.err
    assert "-11" in outcome.err
    off = case.run("-t", "3", PROBE, env={"PYTHONFAULTHANDLER": ""},
                   plan="def crash_here():\n  import ctypes; ctypes.string_at(0)\ncrash_here()")
    assert "crash_here" not in off.err


def test_the_report_ends_with_the_workers_last_lines(case):
    outcome = case.run(PAIR, "-t", "3", PROBE,
                       plan="if rank == 0: wait(20)\nfor i in range(100): print('word', i, file=sys.stderr)\nsys.exit(1)")
    below = outcome.err[outcome.err.rindex("====="):]
    assert "word 99" in below and "word 81" in below
    assert "word 50" not in below


def test_an_exception_leads_before_the_kills_that_it_caused(case):
    """A training library kills its siblings before it raises: the blame stays with the exception."""
    record = json.dumps({"message": {"message": "E: boom", "extraInfo": {"py_callstack": "the stack of boom",
                                                                          "timestamp": "1234567890"}}})
    plan = ("note('pid', [rank, os.getpid()]); wait_event('pid', 3)\nif rank != 1: wait(20)\n"
            "rows = [json.loads(l) for l in open(FOLDER + '/events')]\n"
            f"open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w').write({record!r})\n"
            "for r in rows:\n  if r['event'] == 'pid' and r['value'][0] != 1: os.kill(r['value'][1], signal.SIGKILL)\n"
            "sys.exit(1)")
    outcome = case.run("--nproc-per-node=3", PROBE, plan=plan)
    root = outcome.err[outcome.err.index("Root Cause"):]
    assert "the stack of boom" in root
    assert "rank      : 1" in root


def test_the_outer_error_file_is_written_whole(case):
    target = case.dir / "outer.json"
    text = json.dumps({"message": {"message": "E: x", "extraInfo": {"py_callstack": "s", "timestamp": "5"}}})
    case.run(PROBE, plan=leave(text.encode()), env={"TORCHELASTIC_ERROR_FILE": target})
    assert json.loads(target.read_text())["message"]["errorCode"] == 3
    assert [p.name for p in case.dir.glob("outer.json*")] == ["outer.json"]


def test_status_table(case):
    for plan, status in (("", 0), ("sys.exit(42)", 1), ("die('SIGSEGV')", 1), ("raise ValueError", 1)):
        assert case.run(PROBE, plan=plan).status == status, plan
    assert case.run("--bogus").status == 2
    assert case.run("--nnodes=0", PROBE).status == 1


def test_as_torchrun_the_defaults_are_torchruns(case, monkeypatch):
    """The link has one worker and one thread each, whatever the machine has."""
    link = link_as(case, "torchrun")
    monkeypatch.setattr(case.launcher, "command", lambda form: [str(link)])
    outcome = case.run(PAIR, PROBE)
    assert outcome.status == 0, outcome
    assert [w["env"]["OMP_NUM_THREADS"] for w in outcome.workers] == ["1", "1"]
    assert len(case.run(PROBE).workers) == 1
    usage = case.run("--bogus")
    assert usage.status == 2 and "torchrun: error:" in usage.err


def test_threads_per_worker_are_the_cpus_over_the_workers(case):
    cpus = len(os.sched_getaffinity(0))
    for workers in (2, 4):
        outcome = case.run(f"--nproc-per-node={workers}", PROBE)
        assert {w["env"]["OMP_NUM_THREADS"] for w in outcome.workers} == {str(max(1, cpus // workers))}
        assert outcome.err.count("OMP_NUM_THREADS") <= 1
    assert "OMP_NUM_THREADS" not in case.run(PROBE).workers[0]["env"]
    assert case.run(PAIR, PROBE, env={"OMP_NUM_THREADS": "7"}).workers[0]["env"]["OMP_NUM_THREADS"] == "7"


def test_device_variables_of_all_vendors_pass_untouched_without_a_driver(case):
    given = {"CUDA_VISIBLE_DEVICES": "3,1", "HIP_VISIBLE_DEVICES": "2", "ROCR_VISIBLE_DEVICES": "1",
             "ASCEND_RT_VISIBLE_DEVICES": "0,1", "CUDA_DEVICE_ORDER": "FASTEST_FIRST"}
    outcome = case.run(PAIR, PROBE, env=given)
    assert outcome.status == 0, outcome
    for worker in outcome.workers:
        for name in ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
            assert worker["env"][name] == given[name], name


def test_mig_names_one_per_worker(case):
    names = "MIG-11111111-2222-3333-4444-555555555555,MIG-66666666-2222-3333-4444-555555555555"
    outcome = case.run(PAIR, "--virtual-local-rank", PROBE, env={"CUDA_VISIBLE_DEVICES": names})
    assert outcome.status == 0, outcome
    assert [w["env"]["CUDA_VISIBLE_DEVICES"] for w in outcome.workers] == names.split(",")
