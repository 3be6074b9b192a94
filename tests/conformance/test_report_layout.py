"""The layout of the report and of the events, on failures that rows 37 and 73-79 do not show by themselves.

The sentence that stands in for a missing traceback is the launcher's own and is masked; everything else in the
block must be the same text under both launchers.
"""

import json
import re

from tests.support.compare import row
from tests.support.launch import PROBE

FAST = "--monitor-interval=0.2"
NO_TRACEBACK = re.compile(r"(?m)^(  traceback : )(?:To enable traceback see|no traceback was recorded)\b.*$")


def see_layout(case, label, outcome, entries):
    """The masked block, and how many failures it lists."""
    case.see_exit(label, outcome, 1)
    block = NO_TRACEBACK.sub(r"\1<hint>", case.report(outcome))
    case.see(label + "entries", len(re.findall(r"(?m)^\[\d+\]:$", block)), entries)
    case.see(label + "block", block)


def leave(record, status=3):
    return f"open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w').write({json.dumps(record)!r}); sys.exit({status})"


@row
def test_row_37_layout_of_exit_codes(case):
    see_layout(case, "script.", case.run(FAST, PROBE, plan="sys.exit(7)", warm=True), 1)
    see_layout(case, "program.", case.run(FAST, "--no-python", "/bin/false", warm=True), 1)


@row
def test_row_73_layout_without_a_callstack(case):
    record = {"message": {"message": "only\nmessage", "extraInfo": {"timestamp": "1234567890"}}}
    see_layout(case, "text.", case.run(FAST, PROBE, plan=leave(record), warm=True), 1)
    record = {"message": {"extraInfo": {"timestamp": 1234567890}}}
    see_layout(case, "nothing.", case.run(FAST, PROBE, plan=leave(record), warm=True), 1)


@row
def test_row_75_layout_of_text_with_two_lines(case):
    record = {"message": "line one\nline two of caf\u00e9 \U0001f600", "timestamp": 1234567890}
    outcome = case.run(FAST, PROBE, plan=leave(record), warm=True)
    see_layout(case, "", outcome, 1)
    case.see("second line is not indented", "\nline two of caf\u00e9 \U0001f600\n" in outcome.err, True)


@row
def test_row_77_layout_of_a_crash_beside_stopped_peers(case):
    plan = ("if rank == 1: wait_event('ready', 2); die('SIGSEGV')\n"
            "on_signals('SIGTERM', status=9) if rank == 2 else None; note('ready'); wait()")
    outcome = case.run(FAST, "--nproc-per-node=3", PROBE, plan=plan, warm=True)
    see_layout(case, "", outcome, 3)
    case.see("root", re.findall(r"rank      : (\d)", outcome.err[outcome.err.index("Root Cause"):]), ["1"])


def shape(value):
    """The keys, in order, and the types of a JSON value."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    return type(value).__name__


def see_events(case, label, outcome):
    """Every event line: its state and source, the shape of both layers, and what does not differ by run."""
    events = [json.loads(line) for line in outcome.err.splitlines() if line.startswith('{"name"')]
    case.see(label + "states", sorted(f"{e['source']} {e['metadata']['state']}" for e in events))
    for number, event in enumerate(sorted(events, key=lambda e: (e["name"], e["metadata"]["global_rank"] or 0))):
        metadata = event["metadata"]
        inner = json.loads(metadata["metadata"])
        case.see(f"{label}{number}.shape", json.dumps([shape(event), shape(inner)]))
        case.see(f"{label}{number}.name", event["name"])
        case.see(f"{label}{number}.ranks", [metadata["global_rank"], metadata["group_rank"], inner.get("local_rank"),
                                            inner.get("role_rank"), inner.get("exit_code")])
        case.see(f"{label}{number}.raw_error", metadata["raw_error"])


@row
def test_row_37_events(case):
    console = "--event-log-handler=console"
    see_events(case, "failed.", case.run(FAST, console, PROBE, plan="sys.exit(7)", warm=True))
    see_events(case, "ended.", case.run(FAST, console, "--nproc-per-node=2", PROBE, plan="", warm=True))
    record = leave({"message": "t", "timestamp": 5})
    see_events(case, "recorded.", case.run(FAST, console, PROBE, plan=record, warm=True))
    for handler in ("null", "dynamic_rendezvous"):
        outcome = case.run(FAST, f"--event-log-handler={handler}", PROBE, plan="", warm=True)
        case.see_exit(f"{handler}.", outcome, 0)
        see_events(case, f"{handler}.", outcome)
    outcome = case.run(FAST, console, PROBE, plan="", env={"LOGLEVEL": "WARNING"}, warm=True)
    see_events(case, "LOGLEVEL.", outcome)
    case.see_exit("unknown.", case.run(FAST, "--event-log-handler=zzz", PROBE, plan="", warm=True), 1)
