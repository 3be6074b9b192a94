# expect: nothing
# needs: transformers
from transformers import HfArgumentParser, TrainingArguments
(args,) = HfArgumentParser((TrainingArguments,)).parse_args_into_dataclasses()
print(args.local_rank)
