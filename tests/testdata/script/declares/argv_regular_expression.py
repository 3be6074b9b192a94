# expect: --local_rank --local-rank
import re
import sys
for arg in sys.argv:
    found = re.match(r"--local[-_]rank=(\d+)", arg)
    if found:
        print(found.group(1))
