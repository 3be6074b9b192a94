# expect: nothing
# rejects
import argparse

def option(name):
    return name.replace("local_", "")
parser = argparse.ArgumentParser()
parser.add_argument(option("--local_rank"), type=int)
parser.parse_args()
