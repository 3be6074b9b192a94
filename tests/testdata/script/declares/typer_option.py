# expect: --local_rank
# needs: typer
import typer
def main(epochs: int = 1, local_rank: int = typer.Option(0, "--local_rank", help="set by the launcher")):
    print(local_rank)
typer.run(main)
