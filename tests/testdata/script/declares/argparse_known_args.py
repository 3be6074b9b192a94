# expect: --local_rank
import argparse

parser = argparse.ArgumentParser(add_help=False)
parser.add_argument("--local_rank", default=0, type=int); args, rest = parser.parse_known_args()
print(args.local_rank)
