# expect: --local_rank --local-rank
import argparse

import sys
parser = argparse.ArgumentParser()
DASH = "--local-rank=3" in sys.argv
parser.add_argument("--local-rank" if DASH else "--local_rank", type=int)
print(parser.parse_args().local_rank)
