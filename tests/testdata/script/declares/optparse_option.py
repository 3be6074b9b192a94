# expect: --local_rank
from optparse import OptionParser
parser = OptionParser()
parser.add_option("-r", "--local_rank", dest="local_rank", type="int")
options, _ = parser.parse_args()
print(options.local_rank)
