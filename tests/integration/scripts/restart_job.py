"""A DDP job that loses a worker in its first attempt and must work in the second."""

import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world, attempt = dist.get_rank(), dist.get_world_size(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
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
print(f"attempt {attempt} world {total.item():.0f}" + "\n", end="", flush=True)  # One write: lines of ranks do not mix.
dist.barrier()
# torch 2.15 with gloo now and then aborts or hangs while the interpreter shuts down, also without any launcher; the
# process group has done its work by now.
os._exit(0)
