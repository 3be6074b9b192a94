# expect: --local_rank
import sys
rank = 0
for arg in sys.argv[1:]:
    if arg.startswith("--local_rank="):
        rank = int(arg.split("=")[1])
print(rank)
