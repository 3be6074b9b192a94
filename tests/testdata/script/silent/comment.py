# expect: nothing
# rejects
import argparse

# parser.add_argument("--local_rank", type=int) was removed: torchrun sets LOCAL_RANK.
parser = argparse.ArgumentParser()
parser.parse_args()
