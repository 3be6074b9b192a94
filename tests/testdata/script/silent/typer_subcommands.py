# expect: nothing
# needs: typer
# rejects
import typer
app = typer.Typer()
@app.command()
def train(local_rank: int = 0):
    pass
@app.command()
def test(epochs: int = 1):
    pass
app()
