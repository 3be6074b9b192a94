# expect: --local_rank
import argparse

parser = argparse.ArgumentParser()
def add_arg(name, kind, default, **more):
    parser.add_argument(name, type=kind, default=default, **more)
add_arg("--local_rank", int, 0, help="set by the launcher")
print(parser.parse_args().local_rank)
