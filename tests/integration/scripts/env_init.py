"""init_process_group with env://, the plain way."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
value = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(value)
dist.barrier()
print(f"sum {value.item():.0f}" + "\n", end="", flush=True)  # One write: lines of ranks do not mix.
dist.destroy_process_group()
