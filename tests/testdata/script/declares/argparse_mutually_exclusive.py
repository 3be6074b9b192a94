# expect: --local_rank
import argparse

parser = argparse.ArgumentParser()
either = parser.add_mutually_exclusive_group()
either.add_argument("--rank", type=int)
either.add_argument("--local_rank", type=int)
print(parser.parse_args().local_rank)
