"""The application that `bench/scaling.py` has worked: one job that takes as long as it is told."""

import asyncio

from holdfast import Holdfast

app = Holdfast()


@app.job(name="bench.nap", queue="naps")
async def nap(seconds: float) -> None:
    """Sleep, as a job does that waits for somebody else."""
    await asyncio.sleep(seconds)
