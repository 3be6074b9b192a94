# expect: --local-rank
import argparse

parser = argparse.ArgumentParser()
parser.add_argument(("--local" + "-rank"), type=int)
print(parser.parse_args().local_rank)
