# expect: --local_rank
import argparse

LOCAL_RANK_OPTION = "--local_rank"
parser = argparse.ArgumentParser()
parser.add_argument(LOCAL_RANK_OPTION, type=int)
print(parser.parse_args().local_rank)
