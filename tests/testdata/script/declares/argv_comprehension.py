# expect: --local_rank
import sys
print([a.split("=")[1] for a in sys.argv if "--local_rank" in a][0])
