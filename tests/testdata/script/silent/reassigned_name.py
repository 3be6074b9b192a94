# expect: nothing
# rejects
import argparse

name = "--local_rank"
name = "--rank"
parser = argparse.ArgumentParser()
parser.add_argument(name, type=int)
parser.parse_args()
