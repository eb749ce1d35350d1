"""The worker of examples/python-http with one protocol bug, which the first argument names."""

import importlib
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "python-http"


def no_renewal(library: Any) -> None:
    """Never renew the lease, nor notice that it is over."""
    register = library.Registration.__init__

    def without_deadline(self: Any, worker: Any) -> None:
        register(self, worker)
        self.deadline = math.inf

    library.Registration.__init__ = without_deadline
    library.Registration.renew_lease = lambda _self: None


def settles_twice(library: Any) -> None:
    """Send every outcome again after its response."""
    settle = library.Registration.settle

    def twice(self: Any, job: Any, outcome: Any) -> None:
        settle(self, job, outcome)
        settle(self, job, outcome)

    library.Registration.settle = twice


def ignores_cancel(library: Any) -> None:
    """Ignore the jobs that a renewal reports as lost."""
    call = library.Worker.call

    def without_lost(self: Any, path: str, body: Any = None) -> Any:
        response = call(self, path, body)
        return {**response, "lost": []} if path == "/v1/leases/renew" else response

    library.Worker.call = without_lost


def reuses_a_fence(library: Any) -> None:
    """Use the fence of the first claim of a job for all its attempts."""
    fences: dict[str, int] = {}
    create = library.Job.__init__

    def with_first_fence(self: Any, registration: Any, fields: dict[str, Any]) -> None:
        create(self, registration, {**fields, "fence": fences.setdefault(fields["id"], fields["fence"])})

    library.Job.__init__ = with_first_fence


def drops_jobs_at_drain(library: Any) -> None:
    """Exit at the end of the drain time without a word about the jobs that still run."""

    def drop(self: Any) -> None:
        if self.worker.draining.is_set():
            time.sleep(self.worker.drain_time)
            os._exit(0)

    library.Registration.drain = drop


BUGS: dict[str, Callable[[Any], None]] = {
    "no-renewal": no_renewal,
    "settles-twice": settles_twice,
    "ignores-cancel": ignores_cancel,
    "reuses-a-fence": reuses_a_fence,
    "drops-jobs-at-drain": drops_jobs_at_drain,
}


def main() -> None:
    """Run the worker with the bug."""
    sys.path.insert(0, str(FOLDER))
    BUGS[sys.argv[1]](importlib.import_module("holdfast_worker"))
    importlib.import_module("conformance").worker.run()


if __name__ == "__main__":
    main()
