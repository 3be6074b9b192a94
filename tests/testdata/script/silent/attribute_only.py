# expect: nothing
# rejects
import argparse

parser = argparse.ArgumentParser()
args = parser.parse_args()
args.local_rank = 0
if args.local_rank == 0 and hasattr(args, "local_rank"):
    print(args.local_rank)
