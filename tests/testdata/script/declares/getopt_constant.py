# expect: --local_rank --local-rank
from getopt import gnu_getopt
import sys
LONG = ["local_rank=", "local-rank="]
options, _ = gnu_getopt(sys.argv[1:], "", LONG)
print(options[0][1])
