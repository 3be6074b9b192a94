# expect: --local_rank
import argparse

names = {"a": 1}
print(f"{names['a']} {'#'}", f"{{", f'{names["a"]:>{10}}', f"{3!r:^{4}} }}", end="\r")
parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int)
print(parser.parse_args().local_rank)
