# expect: --local-rank
# needs: typer
import typer
def main(epochs: int = 1, local_rank: int = 0):
    print(local_rank)
if __name__ == "__main__":
    typer.run(main)
