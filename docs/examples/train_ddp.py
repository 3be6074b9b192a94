"""Trains a small model with DistributedDataParallel on the CPU, and survives the death of a worker.

    ddprun --nproc-per-node=2 --max-restarts=1 docs/examples/train_ddp.py --checkpoint=/tmp/model.pt

Every worker reads the newest checkpoint when it starts. After a failure the launcher starts the whole group
again, and training goes on from there.
"""

import argparse
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=256, help="samples per worker and step")
    parser.add_argument("--checkpoint", default="checkpoint.pt", help="where training is saved and resumed from")
    parser.add_argument("--checkpoint-every", type=int, default=20, metavar="STEPS")
    parser.add_argument("--pause", type=float, default=0.0, metavar="SECONDS", help="after each step")
    return parser.parse_args()


def make_batch(step, rank, size):
    """A regression problem: other samples for each step and rank, the same ones after a restart."""
    generator = torch.Generator().manual_seed(step * 1000 + rank)
    inputs = torch.randn(size, 8, generator=generator)
    return inputs, torch.sin(inputs[:, :1]) + 0.5 * inputs[:, 1:2]


def save(path, step, model, optimizer):
    """Replaces the checkpoint in one go: a worker that dies here leaves the old one whole."""
    state = {"step": step, "model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, path + ".new")
    os.replace(path + ".new", path)


def load(path, model, optimizer):
    """The step to go on with: 0 without a checkpoint."""
    if not os.path.exists(path):
        return 0
    state = torch.load(path, weights_only=True)
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"]


def say(text):
    """One write per line: lines of several workers on one console stay whole."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def train(arguments):
    rank, world = dist.get_rank(), dist.get_world_size()
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    first = load(arguments.checkpoint, model, optimizer)
    say(f"rank {rank} of {world}, pid {os.getpid()}, attempt {attempt}: starts at step {first}")
    for step in range(first + 1, arguments.steps + 1):
        inputs, targets = make_batch(step, rank, arguments.batch)
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        saving = step % arguments.checkpoint_every == 0
        if saving or step == 1:
            total = loss.detach().clone()
            dist.all_reduce(total)
            if rank == 0:
                if saving:
                    save(arguments.checkpoint, step, model, optimizer)
                say(f"step {step:4d} of {arguments.steps}  loss {total.item() / world:.4f}")
        if arguments.pause:
            time.sleep(arguments.pause)


def main():
    arguments = parse_arguments()
    dist.init_process_group("gloo")
    try:
        train(arguments)
        dist.barrier()
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
