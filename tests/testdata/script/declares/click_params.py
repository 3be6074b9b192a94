# expect: --local_rank
# needs: click
import click
def run(local_rank):
    print(local_rank)
click.Command("train", callback=run, params=[click.Option(["--local_rank"], type=int)])()
