# expect: nothing
# rejects
import argparse

parser = argparse.ArgumentParser()
parser.set_defaults(local_rank=0)
args = parser.parse_args()
