# expect: --local_rank
import sys
if len(sys.argv) > 1 and sys.argv[1].startswith('--local_rank'):
    print(sys.argv.pop(1).split('=')[1])
