"""Ask a real node whatever its description allows, and much that it does not, for as long as you like.

    .venv/bin/python tools/fuzz.py --url postgresql://… --examples 200 --minutes 30

The database must be one of its own; it is migrated. Exit code 1 if an answer is not as described.
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from tests.support.fuzz import fuzz  # noqa: E402

if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--url", required=True, help="the database, for this alone")
    asked.add_argument("--examples", type=int, default=200, help="for each route")
    asked.add_argument("--minutes", type=float, default=30)
    asked.add_argument("--seed", type=int, help="ask again what was asked with it; at random unless given")
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        done = fuzz(
            options.url,
            Path(scratch),
            examples=options.examples,
            seconds=round(options.minutes * 60),
            seed=random.randrange(10**9) if options.seed is None else options.seed,
        )
        print(done.stdout, done.stderr)
        print((Path(scratch) / "node.log").read_text())
    sys.exit(done.returncode)
