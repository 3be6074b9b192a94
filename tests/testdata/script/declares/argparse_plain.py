# expect: --local_rank
import argparse

parser = argparse.ArgumentParser(description="train")
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--local_rank", type=int, default=-1)
args = parser.parse_args()
print(args.local_rank)
