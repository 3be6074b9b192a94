# expect: nothing
# needs: click
# rejects
import click
@click.command()
@click.argument("local_rank", required=False)
@click.option("--rank", "local_rank_of_node", help="--local_rank is gone")
def main(local_rank, local_rank_of_node):
    pass
main()
