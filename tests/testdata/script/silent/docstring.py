# expect: nothing
# rejects
"""Run with

    python -m torch.distributed.launch train.py --local_rank=0
    parser.add_argument("--local_rank")
"""
import argparse

argparse.ArgumentParser(description=__doc__).parse_args()
