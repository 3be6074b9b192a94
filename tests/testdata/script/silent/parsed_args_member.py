# expect: nothing
# rejects
import argparse

import sys
args = argparse.ArgumentParser().parse_args(sys.argv[1:])
if "local_rank" in args:
    print(args)
