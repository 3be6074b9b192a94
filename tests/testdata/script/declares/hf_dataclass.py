# expect: --local_rank
# needs: transformers
from dataclasses import dataclass, field
from transformers import HfArgumentParser
@dataclass
class ScriptArguments:
    """Arguments of the script."""
    model: str = field(default="x", metadata={"help": "name"})
    local_rank: int = field(default=-1, metadata={"help": "set by the launcher"})
(args,) = HfArgumentParser((ScriptArguments,)).parse_args_into_dataclasses()
print(args.local_rank)
