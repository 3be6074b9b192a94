"""Rows 37-50, 64 and 65 of the conformance list: failures, restarts, signals and the end of a job.

Torchrun is started afresh here: what counts is the behaviour of its process.
"""

import os
import socket

from tests.support.compare import row
from tests.support.launch import PROBE, wait_until

PAIR = "--nproc-per-node=2"
FAST = "--monitor-interval=0.2"


def signals_of(case, rank):
    return [e["value"] for e in case.events("signal") if e["rank"] == rank]


def stay(*names, status=None):
    """A plan: note these signals, say "ready", stay."""
    return f"on_signals(*{names!r}, status={status}); note('ready'); wait()"


@row
def test_row_37_the_exit_code_of_a_worker_is_reported(case):
    outcome = case.run(FAST, PROBE, plan="sys.exit(7)")
    case.see_exit("", outcome, 1)
    case.see_report("", outcome)
    case.see("exitcode", "exitcode  : 7" in outcome.err, True)
    case.see("hint", "To enable traceback see: https://pytorch.org" in outcome.err)
    case.see("stack of the launcher", "Traceback" in outcome.err)
    case.see("temporary files", case.tree(case.tmp))


@row
def test_row_38_peers_of_a_failed_worker_get_sigterm(case):
    case.run(FAST, PAIR, PROBE, plan="if rank == 1: wait_event('ready'); sys.exit(3)\n"
             "on_signals('SIGTERM', 'SIGINT', status=0); note('ready'); wait()")
    case.see("signals", signals_of(case, 0), ["SIGTERM"])


@row
def test_row_39_a_worker_may_end_early(case):
    outcome = case.run(FAST, PAIR, PROBE, plan="if rank == 0: note('gone'); sys.exit(0)\n"
                       "wait_event('gone'); time.sleep(0.7)")
    case.see_exit("", outcome, 0)
    case.see("starts", len(outcome.workers), 2)


@row(slow=True)
def test_row_40_a_peer_that_ignores_sigterm_is_killed_after_30_s(case):
    outcome = case.run(FAST, PAIR, PROBE, timeout=90, plan="if rank == 1: wait_event('ready'); sys.exit(3)\n"
                       "on_signals('SIGTERM'); note('ready'); wait()")
    case.see_exit("", outcome, 1)
    case.see("signals", signals_of(case, 0), ["SIGTERM"])
    case.see("after 30 s", 29.5 < outcome.seconds < 60, True)
    case.see_report("", outcome)


@row
def test_row_41_restarts_until_success(case):
    outcome = case.run(FAST, PAIR, "--max_restarts=3", f"--log-dir={case.dir}/logs", f"--master-port={case.port()}",
                       "-r", "3", PROBE, plan="print(f'try {restart} of {rank}'); note('up'); wait_event('up', 2)\n"
                       "if restart < 2: sys.exit(1 if rank == 1 else 0)")
    case.see_exit("", outcome, 0)
    case.see("restarts", [w["restart"] for w in outcome.workers], [0, 0, 1, 1, 2, 2])
    case.see("max", {w["env"]["TORCHELASTIC_MAX_RESTARTS"] for w in outcome.workers}, {"3"})
    case.see("attempts", [p for p in case.tree(case.dir / "logs") if p.endswith("/") and p.count("/") == 2],
             [f"none_<random>/attempt_{n}/" for n in range(3)])
    case.see("files", case.tree(case.dir / "logs"))
    outs = {k: v for k, v in case.tree(case.dir / "logs", contents=True).items() if "latest" not in k}
    case.see("contents", outs)


@row
def test_row_42_restarts_are_limited(case):
    outcome = case.run(FAST, "--max_restarts=1", PROBE, plan="sys.exit(5)")
    case.see_exit("", outcome, 1)
    case.see("restarts", [w["restart"] for w in outcome.workers], [0, 1])
    case.see_report("", outcome)


def see_signal(case, name):
    running = case.start(FAST, PAIR, PROBE, plan=stay("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", status=0))
    running.wait_event("ready", 2)
    running.send(name)
    outcome = running.wait()
    case.see_exit("", outcome, 1)
    case.see("signals", [signals_of(case, rank) for rank in range(2)], [[name], [name]])


@row
def test_row_43_sigterm_is_forwarded(case):
    see_signal(case, "SIGTERM")


@row
def test_row_43_sigint_is_forwarded(case):
    see_signal(case, "SIGINT")


@row
def test_row_43_sighup_is_forwarded(case):
    see_signal(case, "SIGHUP")


@row
def test_row_43_sigquit_is_forwarded(case):
    see_signal(case, "SIGQUIT")


@row
def test_row_44_sigusr1(case):
    plan = "on_signals('SIGUSR1'); note('ready'); wait_event('signal', 1); time.sleep(0.3)"
    running = case.start(FAST, PROBE, plan=plan)
    running.wait_event("ready")
    running.send("SIGUSR1")
    outcome = running.wait()
    case.see_exit("default.", outcome, 138)
    case.see("default.signals", signals_of(case, 0), [])
    case.end_processes()

    running = case.start(FAST, "--signals-to-handle=SIGTERM,SIGUSR1", PROBE, plan=stay("SIGUSR1", status=0))
    running.wait_event("ready")
    running.send("SIGUSR1")
    case.see_exit("listed.", running.wait(), 1)
    case.see("listed.signals", signals_of(case, 0), ["SIGUSR1"])


@row
def test_row_44_sigint_left_out_of_the_list(case):
    running = case.start(FAST, "--signals-to-handle=SIGTERM", PROBE, plan=stay("SIGTERM", "SIGINT", status=0))
    running.wait_event("ready")
    running.send("SIGINT")
    case.see_exit("", running.wait(), 130)
    case.see("signals", signals_of(case, 0), ["SIGTERM"])


@row
def test_row_44_signals_that_cannot_be_handled(case):
    case.see_exit("kill.", case.run("--signals-to-handle=SIGKILL", PROBE, warm=True), 1)
    unknown = case.run("--signals-to-handle=SIGTERM,SIGNONSENSE", PROBE, warm=True)
    case.see_exit("unknown.", unknown, 0)
    case.see("unknown.said", "SIGNONSENSE" in unknown.err, True)
    case.see_exit("empty.", case.run("--signals-to-handle=", PROBE, warm=True), 0)


def see_early_signal(case, name, want):
    running = case.start("--nnodes=2", "--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{case.port()}", PROBE)

    def listening():
        with socket.socket() as client:
            return client.connect_ex(("localhost", case.ports[-1])) == 0
    wait_until(lambda: listening() or not running.alive(), 60)
    if running.alive():
        running.send(name)
    case.see_exit("", running.wait(), want)


@row
def test_row_45_sigterm_in_the_first_rendezvous(case):
    see_early_signal(case, "SIGTERM", 143)


@row
def test_row_45_sighup_in_the_first_rendezvous(case):
    see_early_signal(case, "SIGHUP", 129)


@row
def test_row_45_sigint_in_the_first_rendezvous(case):
    see_early_signal(case, "SIGINT", 130)


@row(slow=True)
def test_row_46_a_second_sigterm_during_the_stop(case):
    running = case.start(FAST, "--shutdown-timeout=4", PROBE, plan=stay("SIGTERM"))
    running.wait_event("ready")
    running.send("SIGTERM")
    running.wait_event("signal")
    running.send("SIGTERM")
    outcome = running.wait()
    case.see_exit("", outcome, 1)
    case.see("signals", signals_of(case, 0), ["SIGTERM", "SIGTERM"])
    case.see("left", list(case.processes().values()), [])


@row
def test_row_47_a_worker_leads_its_session(case):
    running = case.start(FAST, PROBE, plan="grandchild(); " + stay("SIGTERM", status=0))
    running.wait_event("ready")
    worker = case.workers()[0]
    case.see("leader", worker["pid"] == worker["pgid"] == worker["sid"], True)
    running.send("SIGTERM")
    running.wait()
    case.see("left after a stop", len(case.processes()))


@row
def test_row_47_grandchildren_of_a_crashed_worker(case):
    case.run(FAST, PROBE, plan="grandchild(); os._exit(1)")
    case.see("left after a crash", len(case.processes()), 1)


@row
def test_row_47_run_path_workers_stay_in_the_session(case):
    running = case.start(FAST, "--run-path", PROBE, "x", plan=stay("SIGTERM", status=0))
    running.wait_event("ready")
    worker = case.workers()[0]
    case.see("session", worker["sid"] == os.getsid(running.pid), True)
    case.see("group", worker["pgid"] == os.getpgid(running.pid), True)
    case.see("argv", case.mask(" ".join(worker["argv"])), "<root>/tests/support/workers/probe.py x")
    running.send("SIGTERM")
    case.see_exit("", running.wait(), 1)


@row
def test_row_48_sigkill_of_the_launcher(case):
    running = case.start(FAST, PAIR, PROBE, plan="grandchild(new_session=True); note('ready'); wait()")
    running.wait_event("ready", 2)
    running.send("SIGKILL")
    case.see_exit("", running.wait(), 137)
    if case.launcher.name == "ddprun":
        wait_until(lambda: not case.processes(), 10, "the end of the workers", lambda: str(case.processes()))
    case.see("left", len(case.processes()), 4)


@row
def test_row_49_a_trivial_job_does_not_wait_for_the_monitor(case):
    running = case.start(PROBE, plan="note('end')")
    end = running.wait_event("end")[0]["t"]
    outcome = running.wait()
    case.see_exit("", outcome, 0)
    case.see("at once", running.started + outcome.seconds - end < 4, True)


@row(slow=True)
def test_row_50_the_shutdown_timeout_of_a_signal(case):
    def see(label, want, *args, **env):
        running = case.start(FAST, *args, PROBE, plan=stay("SIGTERM"), env=env)
        running.wait_event("ready")
        running.send("SIGTERM")
        outcome = running.wait()
        killed = running.started + outcome.seconds - running.wait_event("signal")[0]["t"]
        case.see_exit(f"{label}.", outcome, 1)
        case.see(f"{label}.about {want} s", want - 0.1 < killed < want + 1.9, True)

    see("option", 2, "--shutdown-timeout", "2")
    see("variable", 2, TORCH_ELASTIC_SHUTDOWN_TIMEOUT="2")
    running = case.start(FAST, "--shutdown-timeout=0", PROBE, plan=stay())
    running.wait_event("ready")
    running.send("SIGTERM")
    case.see("zero.below 2 s", running.wait().seconds < 60, True)


@row(slow=True)
def test_row_50_the_shutdown_timeout_of_a_peer_failure(case):
    outcome = case.run(FAST, PAIR, "--shutdown-timeout=2", PROBE, timeout=90,
                       plan="if rank == 1: wait_event('ready'); sys.exit(3)\n" + stay("SIGTERM"))
    case.see_exit("", outcome, 1)
    case.see("after 30 s", 29 < outcome.seconds < 60, True)


@row
def test_row_50_bad_shutdown_timeouts(case):
    case.see_exit("word.", case.run("--shutdown-timeout=x", PROBE, warm=True), 2)
    case.see_exit("negative.", case.run("--shutdown-timeout=-1", PROBE, warm=True), 1)
    case.see_exit("variable.", case.run(PROBE, env={"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "x"}, warm=True), 1)


@row
def test_row_64_c10d_without_endpoint_uses_port_29400(case):
    plan = ("import socket\nclient = socket.socket()\n"
            "note('open', client.connect_ex(('localhost', 29400)) == 0)")
    outcome = case.run("--rdzv-backend=c10d", PROBE, plan=plan)
    case.see_exit("", outcome, 0)
    case.see_workers("", outcome, 1)
    case.see("29400 open", case.events("open")[0]["value"], True)


@row
def test_row_65_two_standalone_jobs_do_not_meet(case):
    first = case.start("--standalone", PAIR, PROBE, plan="note('first'); wait_event('second', 2)")
    first.wait_event("first", 2)
    other = type(case)(case.launcher, case.dir / "other")
    try:
        second = other.run("--standalone", PAIR, PROBE, env={"DDP_TEST_DIR": other.dir},
                           plan=f"FOLDER = {str(case.dir)!r}; note('second')")
    finally:
        other.close()
    case.see_exit("second.", second, 0)
    case.see_exit("first.", first.wait(), 0)
    case.see("worlds", {w["env"]["WORLD_SIZE"] for w in second.workers}, {"2"})


@row
def test_row_65_two_default_jobs_do_not_meet(case):
    first = case.start(PAIR, PROBE, plan="note('ready'); on_signals('SIGTERM', status=0); wait()")
    first.wait_event("ready", 2)
    other = type(case)(case.launcher, case.dir / "other")
    try:
        case.see_exit("", other.run(PAIR, PROBE), 0)
    finally:
        other.close()
    first.send("SIGTERM")
    first.wait()


