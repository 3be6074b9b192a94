"""What bad input gets: one sentence with the option, the value and the way out; nothing is started."""

import os
import re
import socket
import subprocess
import sys

import pytest

from tests.support.launch import NOBODY, PROBE, PYTHON, Case, nobody_can_run, reachable_for_all


def assert_refused(case, outcome, *words, status=1):
    """Nothing was started and one or two lines say why (a usage line may stand before them)."""
    assert outcome.status == status, outcome
    assert outcome.workers == []
    assert "Traceback" not in outcome.err
    text = [line for line in outcome.err.splitlines() if line.strip() and not line.startswith("usage:")]
    assert 1 <= len(text) <= 2, outcome.err
    for word in words:
        assert word in outcome.err, f"{word!r} is not in {outcome.err!r}"
    assert list(case.tmp.iterdir()) == []


def test_a_script_that_does_not_exist(case):
    assert_refused(case, case.run("--nproc-per-node=2", "no_such.py"), "no_such.py")


def test_a_script_that_is_a_folder(case):
    (case.dir / "package").mkdir()
    assert_refused(case, case.run("package"), "package", "__main__.py")


def test_a_folder_with_a_main_module_is_a_script(case):
    """Python runs a directory that holds __main__.py; so does torchrun."""
    (case.dir / "package").mkdir()
    (case.dir / "package" / "__main__.py").write_text("print('main of a folder')")
    outcome = case.run("package")
    assert (outcome.status, outcome.out) == (0, "main of a folder\n"), outcome


@pytest.mark.skipif(not nobody_can_run(), reason="needs root to become a user who cannot read a file")
def test_a_script_that_cannot_be_read(case):
    script = case.dir / "secret.py"
    script.write_text("print(1)")
    script.chmod(0o600)
    with reachable_for_all(case.dir):
        outcome = case.run(script, before=NOBODY)
    assert_refused(case, outcome, "secret.py", "ermission")


@pytest.mark.skipif(not nobody_can_run(), reason="needs root to become a user who cannot write a folder")
def test_a_log_folder_that_cannot_be_written(case):
    (case.dir / "locked").mkdir(mode=0o755)
    with reachable_for_all(case.dir):
        outcome = case.run("--log-dir", case.dir / "locked" / "logs", "-r", "3", "--no-python", "true", before=NOBODY)
    assert_refused(case, outcome, "locked/logs", "ermission")


def test_a_log_folder_that_is_a_file(case):
    (case.dir / "plain").write_text("")
    assert_refused(case, case.run("--log-dir", case.dir / "plain", PROBE), "plain")


def test_an_interpreter_without_torch(case):
    wrapper = case.dir / "bare_python"
    wrapper.write_text(f'#!/bin/sh\nexec {os.path.realpath(PYTHON)} -S -E "$@"\n')
    wrapper.chmod(0o755)
    outcome = case.run("--nproc-per-node=2", PROBE, env={"PYTHON_EXEC": wrapper},
                       plan="import importlib.util; note('torch', importlib.util.find_spec('torch') is not None)")
    assert outcome.status == 0, outcome
    assert [e["value"] for e in case.events("torch")] == [False, False]


def test_a_failed_import_of_torch_names_the_interpreter(case):
    wrapper = case.dir / "bare_python"
    wrapper.write_text(f'#!/bin/sh\nexec {os.path.realpath(PYTHON)} -S -E "$@"\n')
    wrapper.chmod(0o755)
    outcome = case.run(PROBE, env={"PYTHON_EXEC": wrapper}, plan="import torch")
    assert outcome.status == 1
    assert str(wrapper) in outcome.err


@pytest.mark.parametrize(("wrong", "nearest"), [("--nprocpernode", "--nproc-per-node"), ("--log-dirr", "--log-dir"),
                                                ("--standalon3", "--standalone")])
def test_a_wrong_option_names_the_nearest(case, wrong, nearest):
    outcome = case.run(f"{wrong}=2", PROBE)
    assert outcome.status == 2
    assert wrong in outcome.err and nearest in outcome.err


def test_a_taken_port_names_its_holder(case):
    holder = subprocess.Popen(
        [sys.executable, "-c", "import socket,time\ns=socket.socket()\ns.bind(('127.0.0.1',0))\ns.listen()\n"
         "print(s.getsockname()[1],flush=True)\ntime.sleep(60)"], stdout=subprocess.PIPE, text=True)
    try:
        port = holder.stdout.readline().strip()
        outcome = case.run(f"--master-port={port}", PROBE)
        assert outcome.seconds < 5
        assert_refused(case, outcome, port, str(holder.pid), os.path.basename(sys.executable))
        assert "--master-port" in outcome.err or "port" in outcome.err
    finally:
        holder.kill()
        holder.wait()


def test_a_worker_that_finds_its_port_taken_hears_who_has_it(case):
    """The script binds MASTER_PORT, which is the launcher's own store."""
    outcome = case.run("--nproc-per-node=2", "-t", "3", PROBE, plan="import socket\nif rank == 1:\n  s = socket.socket()\n"
                       "  s.bind(('127.0.0.1', int(os.environ['MASTER_PORT'])))\nwait(5)")
    assert outcome.status == 1
    assert "ddress already in use" in outcome.err


@pytest.mark.parametrize("value", ["4(x2)", "a100:4", "", "0", "-1", "1e3", "\u0663x"])
def test_process_counts_of_schedulers(case, value):
    outcome = case.run("--nproc-per-node", value, PROBE)
    assert_refused(case, outcome, "--nproc-per-node")
    if value:
        assert value in outcome.err


def test_unknown_rendezvous_keys_are_named(case):
    outcome = case.run("--rdzv-conf=last_cal_timeout=600", PROBE)
    assert outcome.status == 0
    assert "last_cal_timeout" in outcome.err and "last_call_timeout" in outcome.err


def test_a_module_name_given_as_a_script_suggests_m(case):
    (case.dir / "pkg").mkdir()
    (case.dir / "pkg" / "main.py").write_text("")
    assert_refused(case, case.run("pkg.main"), "pkg.main", "-m")


def test_a_module_in_a_package(case):
    (case.dir / "pkg" / "sub").mkdir(parents=True)
    for name, text in (("__init__.py", ""), ("sub/__init__.py", ""), ("other.py", "word = 'relative'"),
                       ("sub/main.py", "from ..other import word\nprint(word)"),
                       ("__main__.py", "print('package main')")):
        (case.dir / "pkg" / name).write_text(text)
    assert case.run("-m", "pkg.sub.main").out == "relative\n"
    assert case.run("-m", "pkg").out == "package main\n"


def test_options_that_have_no_effect_are_said(case):
    quiet = case.run(PROBE)
    assert quiet.status == 0 and quiet.err == ""
    told = case.run("--standalone", "--rdzv-endpoint=localhost:1234", PROBE)
    assert told.status == 0
    assert "--rdzv-endpoint" in told.err


@pytest.mark.parametrize("args", [["--nnodes=2"], ["--nnodes=1:2", "--rdzv-backend=c10d",
                                                   "--rdzv-endpoint=localhost:29411"]])
def test_many_nodes_are_refused_until_they_work(case, args):
    assert_refused(case, case.run(*args, PROBE), "--nnodes")


def test_an_endpoint_held_by_a_silent_listener_does_not_hang(case):
    """torchrun 2.15 waits for ever for an answer of such a port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        outcome = case.run("--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}", PROBE, timeout=20)
        assert outcome.status in (0, 1), outcome


def test_two_jobs_at_once_get_ports_of_their_own(case, tmp_path):
    first = case.start(PROBE, plan="note('ready'); wait_event('go')")
    first.wait_event("ready")
    second = Case(case.launcher, tmp_path / "second")
    try:
        assert second.run(PROBE).status == 0
        assert second.workers()[0]["env"]["MASTER_PORT"] != case.workers()[0]["env"]["MASTER_PORT"]
    finally:
        second.close()
    with open(case.dir / "events", "a", encoding="utf-8") as events:
        events.write('{"rank": 0, "restart": 0, "event": "go", "t": 0}\n')
    assert first.wait().status == 0


def test_variables_that_act_as_options_are_told(case):
    """An operator's PET_ variable must not change a run by hand without a word."""
    outcome = case.run(PROBE, env={"PET_NPROC_PER_NODE": "3"})
    assert len(outcome.workers) == 3
    assert "PET_NPROC_PER_NODE" in outcome.err


def test_standalone_beats_the_rendezvous_variables(case):
    outcome = case.run("--standalone", PROBE, timeout=20,
                       env={"PET_RDZV_ENDPOINT": "192.0.2.1:1", "PET_RDZV_BACKEND": "static"})
    assert outcome.status == 0, outcome


def test_print_config_and_dry_run_start_nothing(case):
    shown = case.run("--print-config", "--nproc-per-node=2", PROBE, env={"PET_MAX_RESTARTS": "3"})
    assert (shown.status, shown.workers) == (0, [])
    assert re.search(r'max-restarts = "3" +# .*PET_MAX_RESTARTS', shown.out), shown.out
    assert re.search(r'nproc-per-node = "2" +# command line', shown.out), shown.out
    dry = case.run("--dry-run", "--nproc-per-node=2", PROBE)
    assert (dry.status, dry.workers) == (0, [])
    assert "RANK=1" in dry.out and PROBE in dry.out


def test_help_and_version(case):
    shown = case.run("--help")
    assert (shown.status, shown.err) == (0, "")
    assert "--nproc-per-node" in shown.out and "--shutdown-timeout" in shown.out
    version = case.run("--version")
    assert version.status == 0 and "ddprun" in version.out


def test_a_gone_working_directory_is_no_crash(case):
    gone = case.dir / "gone"
    gone.mkdir()
    outcome = case.run("--no-python", "true", cwd=gone, before=["sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh"])
    assert outcome.status in (0, 1), outcome
