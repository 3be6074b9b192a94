# expect: --local-rank
import sys
if any("--local-rank" in a for a in sys.argv) or "--local-rank" in sys.argv:
    print(sys.argv[1][-1])
