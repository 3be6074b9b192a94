# expect: --local_rank --local-rank
import sys
options = dict(a.split("=") for a in sys.argv[1:])
args = sys.argv[1:]
for arg in args:
    if arg.split("=")[0] in ("--local_rank", "--local-rank"):
        print(arg[-1])
