# expect: nothing
# needs: fire
import fire
def train(local_rank=0):
    pass
fire.Fire({"train": train})
