# expect: nothing
# rejects
import argparse

from dataclasses import dataclass
@dataclass
class Options:
    local_rank: int = 0
argparse.ArgumentParser().parse_args()
print(Options(local_rank=1))
