# expect: --local-rank
import argparse

ap = argparse.ArgumentParser()
ap.add_argument('--local-rank', type=int)
print(ap.parse_args().local_rank)
