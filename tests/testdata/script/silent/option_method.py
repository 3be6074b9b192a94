# expect: nothing
# rejects
import argparse

class Config:
    def option(self, *names):
        return names
config = Config()
config.option("--local_rank")
argparse.ArgumentParser().parse_args()
