# expect: nothing
# rejects
import getopt
import sys
print(["local_rank="])
getopt.getopt(sys.argv[1:], "local_rank", ["rank="])
