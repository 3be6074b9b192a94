# expect: --local_rank
# needs: simple_parsing
from dataclasses import dataclass
import simple_parsing
@dataclass
class Options:
    epochs: int = 1
    local_rank: int = 0
parser = simple_parsing.ArgumentParser()
parser.add_arguments(Options, dest="options")
print(parser.parse_args().options.local_rank)
