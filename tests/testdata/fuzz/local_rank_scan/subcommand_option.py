# expect: nothing
# rejects
import argparse

parser = argparse.ArgumentParser()
commands = parser.add_subparsers(required=True, dest="command")
train = commands.add_parser("train")
train.add_argument("--local_rank", type=int)
distributed = train.add_argument_group("distributed")
distributed.add_argument("--local-rank", type=int)
commands.add_parser("test").add_argument("--local_rank")
parser.parse_args()
