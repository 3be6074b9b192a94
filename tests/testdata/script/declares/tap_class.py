# expect: --local_rank
# needs: tap
from tap import Tap
class Arguments(Tap):
    epochs: int = 1
    local_rank: int = 0
print(Arguments().parse_args().local_rank)
