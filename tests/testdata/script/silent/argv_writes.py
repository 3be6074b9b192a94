# expect: nothing
# rejects
import argparse
import sys
argparse.ArgumentParser().parse_args()
sys.argv.append("--local_rank=0")
sys.argv.extend(["--local_rank", "0"])
sys.argv.insert(1, "--local-rank=0")
sys.argv = ["train.py", "--local_rank", "0"]
sys.argv += ["--local_rank"]
