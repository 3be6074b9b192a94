"""DataLoader workers by fork and by spawn under a DistributedSampler."""

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main():
    dist.init_process_group("gloo")
    data = TensorDataset(torch.arange(32))
    for method in ("fork", "spawn"):
        sampler = DistributedSampler(data, shuffle=False)
        loader = DataLoader(data, batch_size=4, sampler=sampler, num_workers=1, multiprocessing_context=method)
        total = torch.tensor(sum(int(batch.sum()) for (batch,) in loader))
        dist.all_reduce(total)
        print(f"{method} {total.item()}" + "\n", end="", flush=True)  # One write: lines of ranks do not mix.
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
