# expect: nothing
# rejects
import argparse

parser = argparse.ArgumentParser()
'''
parser.add_argument("--local_rank", type=int, default=0)
'''
if False:
    text = """parser.add_argument('--local_rank')"""
parser.parse_args()
