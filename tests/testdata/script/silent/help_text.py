# expect: nothing
# rejects
import argparse

parser = argparse.ArgumentParser(usage="no --local_rank here")
parser.add_argument("--rank", type=int, help="not --local_rank", metavar="--local_rank", dest="--local_rank")
parser.parse_args()
