# expect: nothing
# rejects
import argparse
import logging
argparse.ArgumentParser().parse_args()
logging.info("--local_rank %d", 0)
logging.getLogger("--local_rank").warning("local_rank=%s", 1)
