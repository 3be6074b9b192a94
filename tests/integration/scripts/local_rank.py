"""A script of the launch age. The test replaces SPELLING, or takes the argument out."""

import argparse
import os

import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("SPELLING", dest="local_rank", type=int, default=-1)
parser.add_argument("--epochs", type=int, default=1)
arguments = parser.parse_args()
dist.init_process_group("gloo", init_method="env://")
dist.barrier()
print(f"local rank {arguments.local_rank} env {os.environ['LOCAL_RANK']} epochs {arguments.epochs}" + "\n", end="", flush=True)  # One write: lines of ranks do not mix.
dist.destroy_process_group()
