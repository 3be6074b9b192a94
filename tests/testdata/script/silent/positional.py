# expect: nothing
# rejects
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("local_rank", type=int, nargs="?")
parser.parse_args()
