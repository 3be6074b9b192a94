# expect: nothing
# needs: click
# rejects
import click
@click.group()
def cli():
    pass
@cli.command()
@click.option("--local_rank", type=int)
def train(local_rank):
    pass
cli()
