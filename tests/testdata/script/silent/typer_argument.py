# expect: nothing
# needs: typer
# rejects
import typer
def main(local_rank: int = typer.Argument(0)):
    pass
typer.run(main)
