# expect: --local-rank
# needs: tyro
import dataclasses
import tyro
@dataclasses.dataclass
class Args:
    local_rank: int = 0
print(tyro.cli(Args).local_rank)
