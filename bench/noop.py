"""Application of `bench/worker.py`: one job that does nothing."""

from holdfast import Holdfast

app = Holdfast()


@app.job(name="bench.noop", queue="bench")
async def noop(i: int, pad: str) -> None:
    """Do nothing."""
