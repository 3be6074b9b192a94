# expect: --local-rank
# needs: click
import click
@click.command()
@click.option("--epochs", default=1)
@click.option("--local-rank", type=int, default=0)
def main(epochs, local_rank):
    print(local_rank)
main()
