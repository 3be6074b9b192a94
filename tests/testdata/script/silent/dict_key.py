# expect: nothing
# rejects
import argparse
argparse.ArgumentParser().parse_args()
options = {"--local_rank": 0, "local_rank": 1}
print(options["--local_rank"], options.get("--local_rank"), "--local_rank" in options)
