# expect: --local_rank
import argparse

parser = argparse.ArgumentParser()
distributed = parser.add_argument_group("distributed (see --help)")
distributed.add_argument("--local_rank", type=int)
print(parser.parse_args().local_rank)
