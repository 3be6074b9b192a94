"""Object collectives, sub-groups and a monitored barrier in one job."""

import datetime

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()

gathered = [None] * world
dist.all_gather_object(gathered, {"rank": rank, "words": "x" * 5000})
assert [g["rank"] for g in gathered] == list(range(world))
shared = [{"seed": 17}] if rank == 0 else [None]
dist.broadcast_object_list(shared)
assert shared[0]["seed"] == 17
scattered = [None]
dist.scatter_object_list(scattered, [f"for {r}" for r in range(world)] if rank == 0 else None)
assert scattered == [f"for {rank}"]
print("objects" + "\n", end="", flush=True)  # One write: lines of ranks do not mix.

groups = [dist.new_group([r]) for r in range(world)] + [dist.new_group(list(range(world)))]
for group in (groups[rank], groups[world]):
    value = torch.ones(1)
    dist.all_reduce(value, group=group)
    assert value.item() == dist.get_world_size(group)
subgroup, _ = dist.new_subgroups(group_size=1)
assert dist.get_world_size(subgroup) == 1
print("groups" + "\n", end="", flush=True)  # One write: lines of ranks do not mix.

dist.monitored_barrier(timeout=datetime.timedelta(seconds=20))
print("barrier" + "\n", end="", flush=True)  # One write: lines of ranks do not mix.
dist.destroy_process_group()
