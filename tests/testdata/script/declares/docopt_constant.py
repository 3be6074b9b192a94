# expect: --local-rank
# needs: docopt
import docopt
USAGE = """Usage: train [--local-rank=N]"""
print(docopt.docopt(USAGE)["--local-rank"])
