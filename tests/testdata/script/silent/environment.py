# expect: nothing
# rejects
import argparse
import os
argparse.ArgumentParser().parse_args()
rank = int(os.environ.get("LOCAL_RANK", os.environ.get("local_rank", "0")))
if "local_rank" in os.environ or os.getenv("--local_rank"):
    print(rank)
