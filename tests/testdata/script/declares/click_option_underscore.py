# expect: --local_rank
# needs: click
from click import command, option
@command()
@option("--local_rank", "rank", type=int)
def main(rank):
    print(rank)
if __name__ == "__main__":
    main()
