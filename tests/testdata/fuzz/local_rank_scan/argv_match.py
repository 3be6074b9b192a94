# expect: --local_rank
import sys
for arg in sys.argv[1:]:
    match arg.split("="):
        case ["--local_rank", value]:
            print(value)
