# expect: --local_rank
# needs: configargparse
import configargparse
p = configargparse.ArgParser()
p.add("--local_rank", type=int)
print(p.parse_args().local_rank)
