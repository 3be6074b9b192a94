# expect: --local-rank
# needs: typer
from typing_extensions import Annotated
import typer
app = typer.Typer()
@app.command()
def main(local_rank: Annotated[int, typer.Option(help="rank")]):
    print(local_rank)
app()
