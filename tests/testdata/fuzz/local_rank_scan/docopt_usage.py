# expect: --local_rank
# needs: docopt
"""Train.

Usage: train [--local_rank=<n>] [--epochs=<n>]

Options:
  --local_rank=<n>  Set by the launcher [default: 0].
  --epochs=<n>      How long [default: 1].
"""
from docopt import docopt
print(docopt(__doc__)["--local_rank"])
