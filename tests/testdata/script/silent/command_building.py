# expect: nothing
# rejects
import argparse
import sys
argparse.ArgumentParser().parse_args()
command = [sys.executable, "-u", "train.py"] + sys.argv[1:]
command.append("--local_rank={}".format(0))
command += ["--local_rank", "1"]
command.extend(["--local-rank=2"])
