# expect: nothing
# needs: docopt
# rejects
"""--local_rank is set by the launcher."""
from docopt import docopt
USAGE = """Usage: train [--my_local_rank=N]"""
docopt(USAGE)
