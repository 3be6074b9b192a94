"""torch.distributed.checkpoint: saves on all ranks, loads into other tensors."""

import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

dist.init_process_group("gloo")
rank = dist.get_rank()
state = {f"weights.{rank}": torch.full((4,), float(rank)), "step": torch.tensor(7)}
dcp.save(state, checkpoint_id=sys.argv[1])
loaded = {f"weights.{rank}": torch.zeros(4), "step": torch.tensor(0)}
dcp.load(loaded, checkpoint_id=sys.argv[1])
assert loaded["step"] == 7 and loaded[f"weights.{rank}"].tolist() == [float(rank)] * 4
print("checkpoint" + "\n", end="", flush=True)  # One write: lines of ranks do not mix.
dist.barrier()
dist.destroy_process_group()
