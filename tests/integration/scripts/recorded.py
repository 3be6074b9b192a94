"""@record around main: the exception of rank 1 must be the root cause."""

import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record


@record
def main():
    dist.init_process_group("gloo")
    dist.barrier()
    if dist.get_rank() == 1:
        raise ValueError("the reason of rank 1")
    dist.monitored_barrier()


main()
