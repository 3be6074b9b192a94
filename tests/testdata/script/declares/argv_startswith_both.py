# expect: --local_rank --local-rank
import sys
for i, word in enumerate(sys.argv):
    if word.startswith(("--local_rank", "--local-rank")):
        print(word.partition("=")[2])
