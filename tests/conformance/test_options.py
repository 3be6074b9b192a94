"""Rows 1-23 of the conformance list: options, arguments and the command of a worker."""

import os

from tests.support.compare import row
from tests.support.launch import PROBE, PYTHON


def see_exits(case, want, **scenarios):
    """The exit status of several command lines, each with its own label."""
    for label, args in scenarios.items():
        case.see_exit(f"{label}.", case.run(*args, warm=True), want)


@row
def test_row_01_arguments_reach_the_script(case):
    outcome = case.run(PROBE, "a", "--b", "c", warm=True)
    case.see_exit("", outcome, 0)
    case.see_workers("", outcome, 1)
    case.see("tail", outcome.workers[0]["argv"][1:], ["a", "--b", "c"])


@row
def test_row_02_options_after_the_script_belong_to_it(case):
    outcome = case.run(PROBE, "--nproc_per_node=2", warm=True)
    case.see_workers("", outcome, 1)
    case.see("tail", outcome.workers[0]["argv"][1:], ["--nproc_per_node=2"])


@row
def test_row_03_the_first_double_dash_is_dropped(case):
    for label, args, want in (("before", ["--", PROBE, "--", "a"], ["--", "a"]),
                              ("after", [PROBE, "--", "x", "--"], ["x", "--"]),
                              ("inside", [PROBE, "a", "--", "b"], ["a", "--", "b"])):
        outcome = case.run(*args, warm=True)
        case.see_exit(f"{label}.", outcome, 0)
        case.see(f"{label}.tail", outcome.workers[0]["argv"][1:], want)


@row
def test_row_04_both_spellings_and_both_value_forms(case):
    for label, args in (("dash", ["--nproc-per-node=2"]), ("underscore", ["--nproc_per_node", "2"])):
        outcome = case.run(*args, PROBE, warm=True)
        case.see_exit(f"{label}.", outcome, 0)
        case.see(f"{label}.ranks", [w["rank"] for w in outcome.workers], [0, 1])


@row
def test_row_05_usage_errors_exit_2(case):
    see_exits(case, 2, nothing=[], unknown=["--bogus", PROBE], integer=["--max_restarts=x", PROBE],
              choice=["--start_method=zz", PROBE])


@row
def test_row_06_bad_node_counts_exit_1(case):
    see_exits(case, 1, three=["--nnodes=1:2:3", PROBE], word=["--nnodes=abc", PROBE],
              zero=["--nnodes=0", PROBE], reversed=["--nnodes=2:1", PROBE])


@row
def test_row_07_numbers_of_workers(case):
    see_exits(case, 1, word=["--nproc_per_node=foo", PROBE], zero=["--nproc_per_node=0", PROBE],
              negative=["--nproc_per_node=-1", PROBE], hex=["--nproc_per_node=0x2", PROBE])
    blanks = case.run("--nproc_per_node", " 2 ", PROBE, warm=True)
    case.see("blanks.workers", len(blanks.workers), 2)
    cpu = case.run("--nproc_per_node=cpu", PROBE, warm=True)
    case.see("cpu.workers", len(cpu.workers), len(os.sched_getaffinity(0)))
    one = case.run("--nproc_per_node=cpu", PROBE, before=["taskset", "-c", "0"])
    case.see("affinity.workers", len(one.workers), 1)


@row
def test_row_08_bad_limits_exit_1(case):
    see_exits(case, 1, restarts=["--max_restarts", "-1", PROBE], interval=["--monitor_interval=0", PROBE])


@row
def test_row_09_rendezvous_settings(case):
    see_exits(case, 1, word=["--rdzv_conf=foo", PROBE], key=["--rdzv_conf==1", PROBE],
              comma=["--rdzv_conf=a=1,", PROBE])
    see_exits(case, 0, equals=["--rdzv_conf=a=b=c", PROBE],
              blanks=["--rdzv_conf= join_timeout = 5 , last_call_timeout=3", PROBE])


@row
def test_row_10_rendezvous_back_ends(case):
    see_exits(case, 1, unknown=["--rdzv_backend=zzz", PROBE],
              no_port=["--rdzv_backend=static", "--rdzv_endpoint=localhost", PROBE])


@row
def test_row_11_bad_endpoints_exit_1(case):
    see_exits(case, 1, port=["--rdzv_backend=c10d", "--rdzv_endpoint=localhost:99999", PROBE],
              host=["--rdzv_backend=c10d", "--rdzv_endpoint=bad!host:0", PROBE])


@row
def test_row_12_tee_values(case):
    see_exits(case, 1, digit=["-t", "4", PROBE], two_digits=["-t", "10:1", PROBE])
    outcome = case.run("-t", "5:1", PROBE, plan="print('plain')", warm=True)
    case.see_exit("", outcome, 0)
    case.see("out", outcome.out, "plain\n")


@row
def test_row_13_variables_are_defaults_of_options(case):
    env = {"PET_NPROC_PER_NODE": "2", "PET_ROLE": "foo", "PET_MASTER_PORT": case.port()}
    outcome = case.run(PROBE, env=env, warm=True)
    case.see_workers("", outcome, 2)
    case.want(ROLE_NAME="foo / foo", MASTER_PORT="<given port> / <given port>")


@row
def test_row_14_the_command_line_beats_the_variable(case):
    outcome = case.run("--nproc_per_node", "1", PROBE, env={"PET_NPROC_PER_NODE": "2"}, warm=True)
    case.see_workers("", outcome, 1)


@row
def test_row_15_variables_of_numbers_and_flags(case):
    for label, env, want in (("port", {"PET_MASTER_PORT": "abc"}, 2), ("true", {"PET_STANDALONE": "true"}, 1),
                             ("empty", {"PET_STANDALONE": ""}, 1)):
        case.see_exit(f"{label}.", case.run(PROBE, env=env, warm=True), want)
    for label, value, want in (("on", "1", "<uuid>"), ("negative", "-1", "<uuid>"), ("off", "0", "none")):
        env = {"PET_STANDALONE": value, "PET_MASTER_PORT": case.port()}
        outcome = case.run(PROBE, env=env, warm=True)
        case.see(f"{label}.id", case.mask(outcome.workers[0]["env"]["TORCHELASTIC_RUN_ID"]), want)


@row
def test_row_16_templates_in_arguments(case):
    outcome = case.run("--no_python", "--nproc_per_node=2", "echo", "x${local_rank}y$$z", "$local_rank", "$other",
                       "${Local_rank}", "$", warm=True)
    case.see_exit("", outcome, 0)
    case.see("out", sorted(outcome.out.splitlines()),
             ["x0y$z 0 $other ${Local_rank} $", "x1y$z 1 $other ${Local_rank} $"])


@row
def test_row_17_programs_that_are_not_python(case):
    see_exits(case, 1, module=["--no_python", "-m", "x"], missing=["--no_python", "nosuchcmd"])


@row
def test_row_18_modules(case):
    outcome = case.run("-m", "probe", "z", cwd=os.path.dirname(PROBE), warm=True)
    case.see_exit("", outcome, 0)
    case.see_workers("", outcome, 1)
    case.see("tail", outcome.workers[0]["argv"][1:], ["z"])
    case.see_exit("value.", case.run("--module=probe", warm=True), 2)


@row
def test_row_19_the_interpreter_of_the_variable(case):
    python = case.dir / "py"
    python.symlink_to(os.path.realpath(PYTHON))
    outcome = case.run("-m", "probe", "z", cwd=os.path.dirname(PROBE), env={"PYTHON_EXEC": python}, warm=True)
    case.see_exit("", outcome, 0)
    case.see("command", case.mask(" ".join(outcome.workers[0]["command"])), "<dir>/py -u -m probe z")


@row
def test_row_20_launch_adds_the_local_rank_argument(case):
    for label, args, extra in (("plain", [], ["--local-rank=0"]), ("dash", ["--use-env"], []),
                               ("underscore", ["--use_env"], [])):
        outcome = case.run(*args, PROBE, "a", "b", form="launch", warm=True)
        case.see(f"{label}.tail", outcome.workers[0]["argv"][1:], [*extra, "a", "b"])
        case.see(f"{label}.LOCAL_RANK", outcome.workers[0]["env"]["LOCAL_RANK"], 0)
    two = case.run("--nproc-per-node=2", PROBE, form="launch", warm=True)
    case.see("two", [w["argv"][1] for w in two.workers], ["--local-rank=0", "--local-rank=1"])


@row
def test_row_21_launch_of_a_program_needs_use_env(case):
    case.see_exit("", case.run("--no_python", "true", form="launch", warm=True), 1)
    case.see_exit("use_env.", case.run("--no_python", "--use_env", "true", form="launch", warm=True), 0)


@row
def test_row_22_the_last_of_a_repeated_option_wins(case):
    outcome = case.run("--nproc_per_node", "1", "--nproc_per_node", "2", PROBE, warm=True)
    case.see_workers("", outcome, 2)


@row
def test_row_23_stdin_reaches_the_worker(case):
    outcome = case.run(PROBE, stdin="first\nsecond\n", plan="note('line', sys.stdin.readline())", warm=True)
    case.see_exit("", outcome, 0)
    case.see("line", repr(case.events("line")[0]["value"]), repr("first\n"))
