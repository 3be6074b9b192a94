# expect: --local_rank
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("-r", "--local_rank", type=int)
print(parser.parse_args().local_rank)
