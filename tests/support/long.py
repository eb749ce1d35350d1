"""Switch for full test sizes: HOLDFAST_LONG_TESTS=1."""

import os

LONG = os.environ.get("HOLDFAST_LONG_TESTS", "") not in ("", "0")
