# expect: --local_rank
import getopt
import sys
options, _ = getopt.getopt(sys.argv[1:], "h", ["help", "local_rank=", "epochs="])
print(dict(options)["--local_rank"])
