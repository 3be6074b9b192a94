# expect: --local_rank
# needs: jsonargparse
from jsonargparse import CLI
def main(local_rank: int = 0):
    print(local_rank)
if __name__ == "__main__":
    CLI(main)
