# expect: nothing
# rejects
import argparse

parser = argparse.ArgumentParser()
names = [b"--local_rank"]
parser.parse_args()
