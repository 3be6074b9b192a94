# expect: --local_rank
import argparse

def get_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument(
        # The launcher gives it.
        "--local_rank",
        type=int,
        default=-1,
        metavar="N",
        help="Local process rank.",
    )
    return parser
print(get_parser().parse_args().local_rank)
