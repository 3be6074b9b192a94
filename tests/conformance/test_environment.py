"""Rows 24-31, 35 and 36 of the conformance list: the environment and the ranks of workers."""

import os

from tests.support.compare import row
from tests.support.launch import PROBE


@row
def test_row_24_a_single_worker_by_default(case):
    outcome = case.run(PROBE, warm=True)
    case.see_exit("", outcome, 0)
    case.see_workers("", outcome, 1)
    case.want(RANK=0, LOCAL_RANK=0, WORLD_SIZE=1, GROUP_RANK=0, GROUP_WORLD_SIZE=1, ROLE_NAME="default",
              ROLE_RANK=0, ROLE_WORLD_SIZE=1, LOCAL_WORLD_SIZE=1, TORCHELASTIC_RESTART_COUNT=0,
              TORCHELASTIC_MAX_RESTARTS=0)
    worker = outcome.workers[0]
    case.see("cwd", case.mask(worker["cwd"]), "<dir>")
    case.see("descriptors", sorted(int(fd) for fd in worker["files"] if int(fd) < 3), "[0, 1, 2]")
    case.see("blocked signals", worker["blocked"], "0" * 16)
    case.see("cpus", worker["cpus"] == sorted(os.sched_getaffinity(0)), True)


@row
def test_row_24_the_same_from_a_torchrun_that_was_started_afresh(case):
    outcome = case.run("--nproc-per-node=3", "--role=r", "--max-restarts=2", PROBE)
    case.see_exit("", outcome, 0)
    case.see_workers("", outcome, 3)
    case.want(RANK="0 / 1 / 2", LOCAL_RANK="0 / 1 / 2", WORLD_SIZE="3 / 3 / 3", GROUP_RANK="0 / 0 / 0",
              GROUP_WORLD_SIZE="1 / 1 / 1", ROLE_NAME="r / r / r", ROLE_RANK="0 / 1 / 2",
              ROLE_WORLD_SIZE="3 / 3 / 3", LOCAL_WORLD_SIZE="3 / 3 / 3", TORCHELASTIC_MAX_RESTARTS="2 / 2 / 2")


@row
def test_row_24_signals_of_a_program_that_is_not_python(case):
    outcome = case.run("--no-python", "grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status")
    case.see("status", outcome.out.replace("\t", " ").splitlines())


@row
def test_row_25_master_address_and_run_id(case):
    outcome = case.run(PROBE, warm=True)
    case.see_workers("default.", outcome, 1)
    case.wanted |= {"default.env.TORCHELASTIC_RUN_ID": "<uuid>",
                    "default.env.TORCHELASTIC_USE_AGENT_STORE": "True", "default.env.MASTER_PORT": "<port>"}
    outcome = case.run("--master-port", case.port(), PROBE, warm=True)
    case.see_workers("port.", outcome, 1)
    case.wanted |= {"port.env.TORCHELASTIC_RUN_ID": "none", "port.env.MASTER_ADDR": "127.0.0.1",
                    "port.env.MASTER_PORT": "<given port>", "port.env.TORCHELASTIC_USE_AGENT_STORE": "True"}


@row
def test_row_26_standalone(case):
    for label, env, want in (("shared", {}, "True"),
                             ("disabled", {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}, "False")):
        outcome = case.run("--standalone", PROBE, env=env, warm=True)
        case.see_workers(f"{label}.", outcome, 1)
        case.wanted |= {f"{label}.env.TORCHELASTIC_RUN_ID": "<uuid>",
                        f"{label}.env.TORCHELASTIC_USE_AGENT_STORE": want}


@row
def test_row_27_threads_per_worker(case):
    two = case.run("--nproc-per-node=2", PROBE, before=["taskset", "-c", "0"])
    case.see("two.OMP_NUM_THREADS", [w["env"].get("OMP_NUM_THREADS") for w in two.workers], ["1", "1"])
    case.see("two.said", "OMP_NUM_THREADS" in two.err, True)
    if len(os.sched_getaffinity(0)) >= 4:
        many = case.run("--nproc-per-node=2", PROBE, before=["taskset", "-c", "0-3"])
        case.see("four CPUs.OMP_NUM_THREADS", [w["env"].get("OMP_NUM_THREADS") for w in many.workers],
                 ["1", "1"])
    else:
        case.leave_out("four CPUs.OMP_NUM_THREADS", "this machine has fewer than four CPUs")
    one = case.run(PROBE, warm=True)
    case.see("one.OMP_NUM_THREADS", one.workers[0]["env"].get("OMP_NUM_THREADS"), "None")
    for label, value in (("preset", "2"), ("empty", "")):
        preset = case.run("--nproc-per-node=2", PROBE, env={"OMP_NUM_THREADS": value}, warm=True)
        case.see(f"{label}.OMP_NUM_THREADS", [w["env"]["OMP_NUM_THREADS"] for w in preset.workers], [value] * 2)


@row
def test_row_28_nccl_error_handling(case):
    name = "TORCH_NCCL_ASYNC_ERROR_HANDLING"
    case.see("preset", case.run(PROBE, env={name: "0"}, warm=True).workers[0]["env"][name], "0")
    case.see("default", case.run(PROBE, warm=True).workers[0]["env"][name], "1")


@row
def test_row_29_inherited_rank_variables_do_not_reach_workers(case):
    stale = {name: "9" for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "GROUP_RANK", "ROLE_RANK", "MASTER_PORT",
                                    "LOCAL_WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT")}
    outcome = case.run("--nproc-per-node=2", PROBE,
                       env=stale | {"MASTER_ADDR": "192.0.2.1", "TORCHELASTIC_ERROR_FILE": f"{case.dir}/outer",
                                    "TORCHELASTIC_RUN_ID": "outer", "ROLE_NAME": "outer"}, warm=True)
    case.see_workers("", outcome, 2)
    case.want(RANK="0 / 1", WORLD_SIZE="2 / 2", TORCHELASTIC_RUN_ID="<uuid> / <uuid>")


@row
def test_row_30_python_unbuffered_is_not_set(case):
    outcome = case.run(PROBE, warm=True)
    case.see("set", "PYTHONUNBUFFERED" in outcome.workers[0]["env"], False)


@row
def test_row_31_the_endpoint_beats_the_master_port(case):
    outcome = case.run(f"--rdzv_endpoint=127.0.0.1:{case.port()}", "--master_port=29666", PROBE, warm=True)
    case.see_workers("v4.", outcome, 1)
    case.wanted |= {"v4.env.MASTER_PORT": "<given port>", "v4.env.MASTER_ADDR": "127.0.0.1"}
    if os.path.exists("/proc/net/if_inet6"):
        outcome = case.run(f"--rdzv_endpoint=[::1]:{case.port()}", PROBE, warm=True)
        case.see_workers("v6.", outcome, 1)
        case.wanted |= {"v6.env.MASTER_ADDR": "::1", "v6.env.MASTER_PORT": "<given port>"}
    else:
        case.leave_out("v6.*", "this machine has no IPv6")


@row
def test_row_35_virtual_local_rank(case):
    names = ("LOCAL_RANK", "RANK", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")

    def see(label, env, *args):
        outcome = case.run("--virtual-local-rank", "--nproc-per-node=2", *args, PROBE, "${local_rank}", env=env,
                           warm=True)
        case.see_exit(f"{label}.", outcome)
        for name in names:
            case.see(f"{label}.{name}", [w["env"].get(name) for w in outcome.workers])
        case.see(f"{label}.tail", [w["argv"][1:] for w in outcome.workers])

    see("list", {"CUDA_VISIBLE_DEVICES": "4, 6"})
    case.wanted |= {"list.LOCAL_RANK": "['0', '0']", "list.CUDA_VISIBLE_DEVICES": "['4', '6']",
                    "list.tail": "[['0'], ['1']]"}
    see("unset", {})
    case.wanted |= {"unset.CUDA_VISIBLE_DEVICES": "['0', '1']"}
    see("short", {"CUDA_VISIBLE_DEVICES": "4"})
    case.wanted |= {"short.exit": "1"}
    see("empty", {"CUDA_VISIBLE_DEVICES": ""})
    see("hip", {"CUDA_VISIBLE_DEVICES": "4,6", "HIP_VISIBLE_DEVICES": "1,2"})
    case.wanted |= {"hip.CUDA_VISIBLE_DEVICES": "['1', '2']", "hip.HIP_VISIBLE_DEVICES": "['1', '2']"}


@row
def test_row_36_the_error_file(case):
    outcome = case.run("--nproc-per-node=2", f"--log-dir={case.dir}/logs", f"--master-port={case.port()}", PROBE,
                       plan="note('folder', os.path.isdir(os.path.dirname(os.environ['TORCHELASTIC_ERROR_FILE'])))",
                       warm=True)
    case.see("path", [case.mask(w["env"]["TORCHELASTIC_ERROR_FILE"]) for w in outcome.workers],
             [f"<dir>/logs/none_<random>/attempt_0/{rank}/error.json" for rank in range(2)])
    case.see("folder", [e["value"] for e in case.events("folder")], [True, True])
    quiet = case.run("--log-dir=/dev/null", PROBE, warm=True)
    case.see("null", repr(quiet.workers[0]["env"]["TORCHELASTIC_ERROR_FILE"]), "''")
