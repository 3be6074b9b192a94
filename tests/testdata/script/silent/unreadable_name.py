# expect: nothing
# rejects
import argparse

import os
name = os.environ.get("RANK_OPTION", "--rank")
parser = argparse.ArgumentParser()
parser.add_argument(name, type=int)
parser.add_argument(f"--{name.strip('-')}_again", type=int)
parser.parse_args()
