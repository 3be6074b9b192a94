# expect: --local_rank --local-rank
import argparse

parser = argparse.ArgumentParser()
parser.add_argument(r"--local_rank", f"--local-rank", type=int)
print(parser.parse_args().local_rank)
