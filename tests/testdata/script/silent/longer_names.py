# expect: nothing
# rejects
import argparse

parser = argparse.ArgumentParser(allow_abbrev=False)
parser.add_argument("--local_rank_id", "--my_local_rank", "--local_ranks", "--local_rank=0", type=int)
parser.parse_args()
