"""Application of `bench/scaling.py`: one job that sleeps."""

import asyncio

from holdfast import Holdfast

app = Holdfast()


@app.job(name="bench.nap", queue="naps")
async def nap(seconds: float) -> None:
    """Sleep, like a job that waits for another service."""
    await asyncio.sleep(seconds)
