# expect: --local_rank --local-rank
import argparse

parser = argparse.ArgumentParser()
parser.add_argument(*["--local_rank", "--local-rank"], **dict(type=int, default=-1))
print(parser.parse_args().local_rank)
