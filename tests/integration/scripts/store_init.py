"""init_process_group with a store of the script's own, as Ray and friends do it: rank 0 serves it."""

import datetime
import os

import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
limit = datetime.timedelta(seconds=30)
# Over the launcher's store, as a client: its address is in the environment.
shared = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), world, False, limit)
if rank == 0:
    own = dist.TCPStore("127.0.0.1", 0, world, True, limit, wait_for_workers=False)
    shared.set("own port", str(own.port))
else:
    own = dist.TCPStore("127.0.0.1", int(shared.get("own port")), world, False, limit)
for name, store in (("shared", dist.PrefixStore("mine", shared)), ("own", own)):
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world)
    value = torch.ones(3) * rank
    dist.all_reduce(value, op=dist.ReduceOp.MAX)
    print(f"{name} {value.tolist()}" + "\n", end="", flush=True)  # One write: lines of ranks do not mix.
    dist.barrier()
    dist.destroy_process_group()
