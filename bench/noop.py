"""The application that `bench/worker.py` has worked: one job that does nothing."""

from holdfast import Holdfast

app = Holdfast()


@app.job(name="bench.noop", queue="bench")
async def noop(i: int, pad: str) -> None:
    """Nothing."""
