# expect: --local_rank
# needs: click
import click
@click.group(invoke_without_command=True)
@click.option("--local_rank", type=int)
def cli(local_rank):
    print(local_rank)
@cli.command()
@click.option("--epochs")
def train(epochs):
    pass
cli()
