# expect: nothing
# rejects
import argparse

def train(epochs=1, local_rank=0):
    print(epochs, local_rank)
argparse.ArgumentParser().parse_args()
train(local_rank=2)
