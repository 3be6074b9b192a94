"""A DDP job that loses a worker in its first attempt and must work in the second.

Model and store live in a function: one that still holds the process group at the end keeps gloo's threads
alive, and torch 2.15 then sometimes aborts in the interpreter's finalization, under every launcher.
"""

import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train(attempt):
    rank, world = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    store = dist.distributed_c10d._get_default_store()
    assert not store.check([f"mark of attempt {attempt - 1}"]), "a key of the attempt before is still there"
    dist.barrier()
    if rank == 0:
        store.set(f"mark of attempt {attempt}", "x")
    for step in range(5):
        model(torch.ones(2, 4)).sum().backward()
        if step == 2 and attempt == 0 and rank == world - 1:
            if sys.argv[1] == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            sys.exit(5)
    total = torch.ones(1)
    dist.all_reduce(total)
    return total.item()


def main():
    dist.init_process_group("gloo")
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    total = train(attempt)
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.write(f"attempt {attempt} world {total:.0f}\n")


main()
