# expect: --local_rank
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int)
commands = parser.add_subparsers()
train = commands.add_parser("train")
train.add_argument("--epochs", type=int)
print(parser.parse_args().local_rank)
