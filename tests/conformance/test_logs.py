"""Rows 67-80 of the conformance list: log files, tee, filters, error files, the report and the file timer."""

import json
import os
import stat

from tests.support.compare import row
from tests.support.launch import PROBE

PAIR = "--nproc-per-node=2"
FAST = "--monitor-interval=0.2"
# One line per stream and worker.
SPEAK = "print(f'out {rank}', flush=True); print(f'err {rank}', file=sys.stderr, flush=True)"


def sorted_lines(text):
    """Lines of several workers come in any order."""
    return sorted(text.splitlines())


def worker_lines(case, text):
    """The workers' lines of stderr, without the launcher's own log."""
    return [case.mask(line) for line in sorted_lines(text) if "err " in line]


def logs(case):
    return f"--log-dir={case.dir}/logs"


@row
def test_row_67_redirects(case):
    for label, extra in (("default", []), ("port", ["--master-port", case.port()])):
        case.tmp.joinpath(label).mkdir()
        outcome = case.run(FAST, PAIR, f"--log-dir={case.dir}/{label}", "-r", "3", *extra, PROBE, plan=SPEAK, warm=True)
        case.see_exit(f"{label}.", outcome, 0)
        case.see(f"{label}.out", outcome.out, "")
        case.see(f"{label}.err", worker_lines(case, outcome.err), [])
        case.see(f"{label}.tree", case.tree(case.dir / label))
        case.see(f"{label}.files", case.tree(case.dir / label, contents=True))
        case.see(f"{label}.mode", oct(stat.S_IMODE(min((case.dir / label).iterdir()).stat().st_mode)), "0o700")
    case.wanted["port.files"] = str({f"none_<random>/attempt_0/{rank}/std{name}.log": f"{name} {rank}\n"
                                     for rank in range(2) for name in ("err", "out")})


@row
def test_row_67_without_a_log_folder(case):
    for label, args in (("tee", ["-t", "3"]), ("redirect", ["-r", "3"]), ("neither", [])):
        outcome = case.run(FAST, *args, PROBE, plan=SPEAK, warm=True)
        case.see_exit(f"{label}.", outcome, 0)
        case.see(f"{label}.temporary files", case.tree(case.tmp))
        for path in sorted(case.tmp.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


@row
def test_row_67_the_folder_cannot_be_made(case):
    (case.dir / "plain").write_text("a file")
    case.see_exit("", case.run(f"--log-dir={case.dir}/plain", PROBE, warm=True), 1)


@row
def test_row_67_no_folder_at_all(case):
    outcome = case.run("--log-dir=/dev/null", "-r", "3", "-t", "3", "--local-ranks-filter=1", PAIR, PROBE, plan=SPEAK,
                       warm=True)
    case.see_exit("", outcome, 0)
    case.see("out", sorted_lines(outcome.out), ["out 0", "out 1"])
    case.see("err", worker_lines(case, outcome.err), ["err 0", "err 1"])
    filtered = case.run("--log-dir=/dev/null", "--duplicate-stdout-filters=x", PROBE, warm=True)
    case.see_exit("filter.", filtered, 1)


@row
def test_row_68_tee(case):
    outcome = case.run(FAST, PAIR, logs(case), "-t", "3", "--role", "trainer", PROBE, plan=SPEAK, warm=True)
    case.see_exit("", outcome, 0)
    case.see("out", sorted_lines(outcome.out), ["[trainer0]:out 0", "[trainer1]:out 1"])
    case.see("err", worker_lines(case, outcome.err), ["[trainer0]:err 0", "[trainer1]:err 1"])
    case.see("files", case.tree(case.dir / "logs", contents=True))


@row
def test_row_69_tee_and_redirects_by_rank(case):
    outcome = case.run(FAST, PAIR, logs(case), "-t", "0:1", "-r", "1:3", PROBE, plan=SPEAK, warm=True)
    case.see("out", sorted_lines(outcome.out), ["[default0]:out 0"])
    case.see("err", worker_lines(case, outcome.err), ["err 0"])
    case.see("files", case.tree(case.dir / "logs", contents=True))


@row
def test_row_70_prefix_templates(case):
    variable = {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "[${role_name}${rank}|$local_rank$$ $x]>"}
    host = os.uname().nodename
    option = "--log-line-prefix-template"
    for label, args, env, want in (("variable", [], variable, "[default0|0$ $x]>out 0\n"),
                                   ("option", [option, "${hostname}:${rank} "], variable, "<host>:0 out 0\n"),
                                   ("empty", [option, ""], variable, "[default0|0$ $x]>out 0\n"),
                                   ("none", [option, ""], {}, "[default0]:out 0\n")):
        outcome = case.run(FAST, logs(case), "-t", "1", *args, PROBE, env=env, plan=SPEAK, warm=True)
        case.see(f"{label}.out", outcome.out.replace(host + ":", "<host>:"), want)


@row
def test_row_71_the_rank_filter(case):
    for label, args in (("plain", []), ("tee", ["-t", "3"])):
        outcome = case.run(FAST, PAIR, f"--log-dir={case.dir}/{label}", "--local-ranks-filter", "0", *args, PROBE,
                           plan=SPEAK, warm=True)
        case.see(f"{label}.out", sorted_lines(outcome.out))
        case.see(f"{label}.err", worker_lines(case, outcome.err))
        case.see(f"{label}.files", case.tree(case.dir / label, contents=True))
    case.wanted |= {"plain.out": "['out 0']", "tee.out": "['[default0]:out 0']"}
    case.see_exit("word.", case.run("--local-ranks-filter=x", PROBE, warm=True), 1)
    case.see_exit("range.", case.run("--local-ranks-filter=7", PROBE, warm=True), 0)


@row
def test_row_72_duplicate_filters(case):
    say = "print('has a,b', flush=True); print('has c', flush=True); print('default only', flush=True)"
    outcome = case.run(FAST, logs(case), "-t", "1", "--duplicate-stdout-filters", "a,,b,c", PROBE, plan=say, warm=True)
    case.see("out", outcome.out, "[default0]:has a,b\n[default0]:has c\n[default0]:default only\n")
    files = case.tree(case.dir / "logs", contents=True)
    case.see("files", files)
    case.see("filtered", next(v for k, v in files.items() if k.endswith("attempt_0/filtered_stdout.log")),
             "[default0]:has a,b\n[default0]:has c\n")


RECORD = """
from torch.distributed.elastic.multiprocessing.errors import record
@record
def main():
    raise ValueError('boom of ' + str(rank))
main()
"""


@row
def test_row_73_recorded_exceptions(case):
    outcome = case.run(FAST, logs(case), PROBE, plan=RECORD)
    case.see_exit("", outcome, 1)
    record = json.loads(next((case.dir / "logs").rglob("error.json")).read_text())["message"]
    case.see("message", record["message"], "ValueError: boom of 0")
    case.see("keys", sorted(record["extraInfo"]), ["py_callstack", "timestamp"])
    case.see("timestamp", type(record["extraInfo"]["timestamp"]).__name__, "str")
    case.see_report("", outcome)
    case.see("callstack", "  ValueError: boom of 0" in outcome.err, True)


def leave_error(text):
    return f"open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w').write({text!r}); sys.exit(3)"


@row
def test_row_74_the_launchers_own_error_file(case):
    target = case.dir / "outer.json"
    target.write_text("old")
    text = json.dumps({"message": {"message": "E: x", "extraInfo": {"py_callstack": "stack\nof x",
                                                                   "timestamp": "1234567890"}}})
    case.see_exit("", case.run(FAST, PROBE, plan=leave_error(text), env={"TORCHELASTIC_ERROR_FILE": target}), 1)
    written = json.loads(target.read_text())
    case.see("written", written)
    case.see("errorCode", written["message"]["errorCode"], 3)
    none = case.dir / "none.json"
    case.run(FAST, PROBE, plan="sys.exit(4)", env={"TORCHELASTIC_ERROR_FILE": none}, warm=True)
    case.see("without a worker's file", none.exists(), False)
    launch = case.dir / "launch.json"
    case.run(FAST, PROBE, plan=leave_error(text), env={"TORCHELASTIC_ERROR_FILE": launch}, form="launch", warm=True)
    case.see("launch form", launch.exists())


@row
def test_row_75_the_short_error_file(case):
    target = case.dir / "outer.json"
    text = json.dumps({"message": "t", "timestamp": 1234567890})
    outcome = case.run(FAST, PROBE, plan=leave_error(text), env={"TORCHELASTIC_ERROR_FILE": target}, warm=True)
    case.see_exit("", outcome, 1)
    case.see("time", "time      : 2009-02-13_23:31:30" in outcome.err, True)
    case.see("traceback", "traceback : t\n" in outcome.err, True)
    case.see("copied", target.read_text(), text)


@row
def test_row_76_an_error_file_that_is_no_json(case):
    outcome = case.run(FAST, PROBE, plan=leave_error("half a {"), warm=True)
    case.see_exit("", outcome, 1)
    case.see_report("", outcome)


@row
def test_row_77_death_by_signal(case):
    outcome = case.run(FAST, PROBE, plan="die('SIGSEGV')", warm=True)
    case.see_exit("", outcome, 1)
    case.see("text", "exitcode  : -11 (pid:" in outcome.err and "Signal 11 (SIGSEGV) received by PID" in outcome.err, True)
    case.see_report("", outcome)


@row
def test_row_78_two_failures_in_one_poll(case):
    """Rank 0 ends first; both are dead when torchrun looks. What ddprun sends to rank 1 meanwhile is ignored."""
    record = "json.dumps({'message': 'of ' + str(rank), 'timestamp': 100 - 50 * late})"
    plan = ("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nnote('ready'); wait_event('ready', 2)\n"
            "if rank == 1: wait_event('leaving'); time.sleep(0.1)\n" + leave_error("T").replace("'T'", record)
            .replace("; sys.exit(3)", "; note('leaving'); sys.exit(3)"))
    for label, late in (("later rank first", "rank"), ("tie", "0")):
        outcome = case.run("--monitor-interval=1", PAIR, PROBE, plan=f"late = {late}\n" + plan, warm=True)
        case.see_exit(f"{label}.", outcome, 1)
        case.see_report(f"{label}.", outcome)


@row
def test_row_79_stopped_peers_are_listed(case):
    plan = ("if rank == 1: wait_event('ready', 2); sys.exit(3)\n"
            "on_signals('SIGTERM', status=0) if rank == 2 else None; note('ready'); wait()")
    outcome = case.run(FAST, "--nproc-per-node=3", PROBE, plan=plan, warm=True)
    case.see_report("", outcome)
    case.see("listed", "exitcode  : -15 (pid:" in outcome.err and "(SIGTERM)" in outcome.err, True)
    case.see("not listed", "rank      : 2" in outcome.err, False)


TIMER = """
path = os.environ['TORCHELASTIC_TIMER_FILE']
import stat
note('fifo', stat.S_ISFIFO(os.stat(path).st_mode))
request = {'version': 1, 'pid': os.getpid(), 'scope_id': 's', 'expiration_time': time.time() + 0.3, 'signal': NUMBER}
with open(path, 'w') as fifo:
    fifo.write(json.dumps(request) + chr(10))
wait()
"""


@row
def test_row_80_the_file_timer(case):
    for name, number in (("kill", 9), ("term", 15)):
        outcome = case.run(FAST, PROBE, plan=TIMER.replace("NUMBER", str(number)),
                           env={"TORCHELASTIC_ENABLE_FILE_TIMER": "1"})
        case.see(f"{name}.fifo", case.events("fifo")[0]["value"], True)
        case.see_exit(f"{name}.", outcome, {"kill": 137, "term": 1}[name])
        left = [p for p in case.tmp.rglob("watchdog_timer_*")]
        case.see(f"{name}.fifo left", len(left), {"kill": 1, "term": 0}[name])
        for path in left:
            path.unlink()
    passed = case.run(FAST, PROBE, env={"TORCHELASTIC_TIMER_FILE": f"{case.dir}/timer"}, warm=True)
    case.see("only passed on", case.mask(passed.workers[0]["env"]["TORCHELASTIC_TIMER_FILE"]), "<dir>/timer")
    case.see("not made", (case.dir / "timer").exists(), False)
    named = case.run(FAST, PROBE, plan="note('fifo', stat.S_ISFIFO(os.stat(os.environ['TORCHELASTIC_TIMER_FILE']).st_mode))",
                     env={"TORCHELASTIC_ENABLE_FILE_TIMER": "1", "TORCHELASTIC_TIMER_FILE": f"{case.dir}/named"}, warm=True)
    case.see("named.path", case.mask(named.workers[0]["env"]["TORCHELASTIC_TIMER_FILE"]), "<dir>/named")
    case.see("named.left", (case.dir / "named").exists(), False)
