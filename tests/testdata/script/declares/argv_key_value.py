# expect: --local_rank
import sys
argv = sys.argv[1:]
while argv:
    key, value = argv.pop(0).split("=")
    if key == "--local_rank":
        print(value)
