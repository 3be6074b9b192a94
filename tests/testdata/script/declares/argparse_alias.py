# expect: --local_rank
import argparse

parser = argparse.ArgumentParser()
arg = parser.add_argument
arg("--lr", type=float, default=0.1)
arg("--local_rank", type=int)
print(parser.parse_args().local_rank)
