# expect: --local_rank --local-rank
import argparse

p = argparse.ArgumentParser()
p.add_argument("--local_rank", "--local-rank", dest="local_rank", type=int, default=0)
print(p.parse_args().local_rank)
