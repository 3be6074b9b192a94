# expect: nothing
# rejects
import argparse
print("--local_rank")
print("use", "--local-rank", "no more")
argparse.ArgumentParser().parse_args()
