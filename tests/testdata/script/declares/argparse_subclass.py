# expect: --local_rank
import argparse

class Parser(argparse.ArgumentParser):
    def __init__(self):
        super().__init__()
        self.add_argument("--local_rank", type=int, default=-1)
print(Parser().parse_args().local_rank)
