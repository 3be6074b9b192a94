# expect: --local_rank
# needs: fire
import fire
def train(epochs=1, local_rank=0):
    print(local_rank)
fire.Fire(train)
