# expect: nothing
# rejects
import argparse

parser = argparse.ArgumentParser()
mode = "--local_rank"
parser.add_argument("--rank" if mode == "--local_rank" else "--id", type=int)
parser.parse_args()
