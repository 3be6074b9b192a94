# expect: --local_rank
import argparse

import os
parser = argparse.ArgumentParser()
if True:
	parser.add_argument("--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK", 0)), help=argparse.SUPPRESS)
print(parser.parse_args().local_rank)
