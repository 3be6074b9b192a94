# expect: --local_rank --local-rank
# needs: click
import click
local_rank_option = click.option("--local_rank", "--local-rank", "local_rank", type=int)
@click.command()
@local_rank_option
def main(local_rank):
    print(local_rank)
main()
