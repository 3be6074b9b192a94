# expect: --local_rank
import sys
print(next(a for a in sys.argv if a.startswith("--local_rank="))[-1])
sys.argv = [a for a in sys.argv if not a.startswith("--local_rank=")]
