"""The same command lines under torch's own parser and under ours: equal exit codes.

torch is imported once, in one child process that takes each line through torch.distributed.run (or
.launch) up to the point where workers would start. Ours runs each line for real, under the name
`torchrun` or `ddprun-launch`, with `true` as the program. Needs the built binaries in DDPRUN_BIN_DIR and
a Python with torch (DDPRUN_TORCH_PYTHON, the repository's .venv, or the one that runs this test).
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("DDPRUN_BIN_DIR", "")) / "ddprun"

ORACLE = r"""
import contextlib, io, json, os, sys
import torch.distributed.run as run
import torch.distributed.launch as launch
from torch.distributed.elastic.agent.server.api import RunResult, WorkerState
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent

# Everything is checked by then; no worker is to start.
LocalElasticAgent.run = lambda self, role="": RunResult(state=WorkerState.SUCCEEDED)
clean = dict(os.environ)

def code_of(line):
    os.environ.clear()
    os.environ.update(clean)
    os.environ.update(line["env"])
    module = launch if line["launch"] else run
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            args = module.parse_args(line["words"])
            (launch.launch if line["launch"] else run.run)(args)
    except SystemExit as leave:
        return leave.code or 0
    except Exception:
        return 1
    return 0

print(json.dumps([code_of(line) for line in json.load(sys.stdin)]))
"""

GOOD = ["--no-python", "true"]


def line(*words, env=None, launch=False):
    return {"words": list(words), "env": env or {}, "launch": launch}


# Equal exit codes are asked for.
LINES = [
    line(*GOOD),
    line("--help"),
    line(),
    line("--"),
    line("--nnodes", "1"),
    line("--bogus", *GOOD),
    line("--max_restarts=x", *GOOD),
    line("--max-restarts=1_0", *GOOD),
    line("--max-restarts", " 2 ", *GOOD),
    line("--max_restarts", "-1", *GOOD),
    line("--start_method=zz", *GOOD),
    line("--start-method=fork", *GOOD),
    line("--monitor-interval", "1e-1", *GOOD),
    line("--monitor_interval=0", *GOOD),
    line("--monitor_interval=x", *GOOD),
    line("--nnodes=1:2:3", *GOOD),
    line("--nnodes=abc", *GOOD),
    line("--nnodes=0", *GOOD),
    line("--nnodes=2:1", *GOOD),
    line("--nnodes= 1 : 1 ", *GOOD),
    line("--nproc_per_node=foo", *GOOD),
    line("--nproc_per_node=0x2", *GOOD),
    line("--nproc_per_node=4(x2)", *GOOD),
    line("--nproc_per_node=a100:4", *GOOD),
    line("--nproc_per_node= 2 ", *GOOD),
    line("--nproc-per", "1", *GOOD),
    line("--nproc_per_node", "1", "--nproc_per_node", "2", *GOOD),
    line("--rdzv", "x", *GOOD),
    line("--rdzv_b", "c10d", "--rdzv-endpoint=localhost:0", *GOOD),
    line("--stan", *GOOD),
    line("--log", "x", *GOOD),
    line("--module=x", *GOOD),
    line("-m", *GOOD),
    line("--role", "-x", *GOOD),
    line("--role", "-5", *GOOD),
    line("--role=-x", *GOOD),
    line("--role"),
    line("-r3", "-t", "1", *GOOD),
    line("-r=3", *GOOD),
    line("-t", "4", *GOOD),
    line("-t", "10:1", *GOOD),
    line("-t", "5:1", *GOOD),
    line("-r0:1,1:2", *GOOD),
    line("-r0:1,", *GOOD),
    line("--rdzv_conf=foo", *GOOD),
    line("--rdzv_conf==1", *GOOD),
    line("--rdzv_conf=a=1,", *GOOD),
    line("--rdzv_conf=a=b=c", *GOOD),
    line("--rdzv_conf", " join_timeout = 5 , last_call_timeout=3", *GOOD),
    line("--standalone", "--rdzv-conf=join_timeout=0", *GOOD),
    line("--standalone", "--rdzv-conf=join_timeout=1.5", *GOOD),
    line("--standalone", "--rdzv-conf=read_timeout=0", *GOOD),
    line("--standalone", "--rdzv-conf=is_host=maybe", *GOOD),
    line("--standalone", "--rdzv-conf=store_type=zz", *GOOD),
    line("--standalone", "--rdzv-conf=cas_backoff_max_seconds=x", *GOOD),
    line("--standalone", "--rdzv-conf=use_libuv=0", *GOOD),
    line("--standalone", "--rdzv-conf=backend=x", *GOOD),
    line("--rdzv_backend=zzz", *GOOD),
    line("--rdzv_backend=", *GOOD),
    line("--rdzv_backend=static", "--rdzv_endpoint=localhost", *GOOD),
    line("--rdzv_backend=c10d", "--rdzv-endpoint=localhost:99999", *GOOD),
    line("--rdzv_backend=c10d", "--rdzv-endpoint=bad!host:0", *GOOD),
    line("--master-port=65536", *GOOD),
    line("--master-port=x", *GOOD),
    line("--local-ranks-filter=a", *GOOD),
    line("--local-ranks-filter=0,99", *GOOD),
    line("--duplicate-stdout-filters=a,,b", *GOOD),
    line("--logs-specs=nosuch", *GOOD),
    line("--numa-binding=zz", *GOOD),
    line("--shutdown-timeout=-1", *GOOD),
    line("--shutdown-timeout=0", *GOOD),
    line("--shutdown-timeout=x", *GOOD),
    line("--virtual-local-rank", *GOOD),
    line(*GOOD, env={"PET_MASTER_PORT": "abc"}),
    line(*GOOD, env={"PET_STANDALONE": "true"}),
    line("--help", env={"PET_STANDALONE": ""}),
    line("--help", env={"PET_MASTER_PORT": "abc"}),
    line(*GOOD, env={"PET_STANDALONE": "1"}),
    line(*GOOD, env={"PET_NNODES": ""}),
    line(*GOOD, env={"PET_START_METHOD": "zz"}),
    line("--max-restarts=1", *GOOD, env={"PET_MAX_RESTARTS": "x"}),
    line(*GOOD, env={"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "x"}),
    line(*GOOD, env={"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "-1"}),
    line("--use-env", *GOOD),
    line("--no_python", "true", launch=True),
    line("--use_env", *GOOD, launch=True),
    line("--use-env=1", *GOOD, launch=True),
]

# Wanted differences: (line, torch's code, ours). docs/torchrun-compat.md gives the reasons.
DIFFERENT = [
    # A prefix that fits both spellings of one option is clear enough.
    (line("--nproc", "1", *GOOD), 2, 0),
    (line("--max", "1", *GOOD), 2, 0),
    # Python 3.11 looks at the script's words too; later ones do not.
    (line("--no-python", "true", "--log"), 2, 0),
    # An endless interval makes torch die while it sleeps, later than this test looks.
    (line("--monitor-interval=inf", *GOOD), 0, 1),
]


def torch_python():
    candidates = [os.environ.get("DDPRUN_TORCH_PYTHON"), ROOT / ".venv/bin/python", sys.executable]
    for candidate in candidates:
        if candidate and pathlib.Path(candidate).exists():
            return str(candidate)
    return sys.executable


def clean_environment():
    drop = ("PET_", "DDPRUN_", "TORCH", "LOGLEVEL", "PYTHON_EXEC", "OMP_")
    return {k: v for k, v in os.environ.items() if not k.startswith(drop)}


@pytest.fixture(scope="module")
def oracle():
    """torch's exit code of every line, by its place in LINES followed by DIFFERENT."""
    python = torch_python()
    version = subprocess.run(
        [python, "-c", "import torch; print(torch.__version__)"],
        capture_output=True, text=True, timeout=120, check=False,
    )
    if version.returncode != 0 or not version.stdout.startswith("2.15"):
        pytest.skip(f"{python} has no torch 2.15, which is the model: {version.stdout.strip()}")
    lines = LINES + [different for different, _, _ in DIFFERENT]
    done = subprocess.run(
        [python, "-c", ORACLE], input=json.dumps(lines), env=clean_environment(),
        capture_output=True, text=True, timeout=300, check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def our_code(entry):
    if not BINARY.is_file():
        pytest.skip(f"{BINARY} is missing: build it and set DDPRUN_BIN_DIR")
    name = "ddprun-launch" if entry["launch"] else "torchrun"
    done = subprocess.run(
        [name, *entry["words"]], executable=str(BINARY), env={**clean_environment(), **entry["env"]},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )
    if done.returncode == 2:
        assert done.stderr.startswith(f"usage: {name} "), done.stderr
    if done.returncode != 0:
        assert f"{name}: error: " in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
    return done.returncode


def label(entry):
    variables = " ".join(f"{k}={v}" for k, v in entry["env"].items())
    name = "launch" if entry["launch"] else "torchrun"
    return f"{variables} {name} {' '.join(entry['words'])}".strip()


@pytest.mark.parametrize("index", range(len(LINES)), ids=lambda i: label(LINES[i]))
def test_exit_code_is_torchruns(index, oracle):
    assert our_code(LINES[index]) == oracle[index]


@pytest.mark.parametrize("index", range(len(DIFFERENT)), ids=lambda i: label(DIFFERENT[i][0]))
def test_wanted_difference_exists(index, oracle):
    entry, torch_code, ours = DIFFERENT[index]
    assert oracle[len(LINES) + index] == torch_code
    assert our_code(entry) == ours
