"""Send valid and invalid requests to a node and compare the responses to the OpenAPI description.

    .venv/bin/python tools/fuzz.py --url postgresql://… --examples 200 --minutes 30

Use a database that nothing else uses; it is migrated. Exit code 1 if a response does not match the description.
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from tests.support.fuzz import fuzz  # noqa: E402

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="database for this run only")
    parser.add_argument("--examples", type=int, default=200, help="examples per route")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, help="repeat the requests of an earlier run; default: random")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        result = fuzz(
            options.url,
            Path(scratch),
            examples=options.examples,
            seconds=round(options.minutes * 60),
            seed=random.randrange(10**9) if options.seed is None else options.seed,
        )
        print(result.stdout, result.stderr)
        print((Path(scratch) / "node.log").read_text())
    sys.exit(result.returncode)
