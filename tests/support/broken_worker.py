"""The worker of examples/python-http with one protocol bug, which the first argument names."""

import importlib.util
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WORKER = Path(__file__).resolve().parents[2] / "examples" / "python-http" / "worker.py"


def no_renewal(worker: Any) -> None:
    """Never renew the lease, nor notice that it is over."""
    register = worker.Worker.__init__

    def without_deadline(self: Any) -> None:
        register(self)
        self.deadline = math.inf

    worker.Worker.__init__ = without_deadline
    worker.Worker.renew_lease = lambda _self: None


def settles_twice(worker: Any) -> None:
    """Send every outcome again after its response."""
    settle = worker.Worker.settle

    def twice(self: Any, job: Any, outcome: Any) -> None:
        settle(self, job, outcome)
        settle(self, job, outcome)

    worker.Worker.settle = twice


def ignores_cancel(worker: Any) -> None:
    """Ignore the jobs that a renewal reports as lost."""
    call = worker.call

    def without_lost(path: str, body: Any = None) -> Any:
        answer = call(path, body)
        return {**answer, "lost": []} if path == "/v1/leases/renew" else answer

    worker.call = without_lost


def reuses_a_fence(worker: Any) -> None:
    """Use the fence of the first claim of a job for all its attempts."""
    fences: dict[str, int] = {}
    create = worker.Job.__init__

    def with_first_fence(self: Any, registration: Any, fields: dict[str, Any]) -> None:
        create(self, registration, {**fields, "fence": fences.setdefault(fields["id"], fields["fence"])})

    worker.Job.__init__ = with_first_fence


def drops_jobs_at_drain(worker: Any) -> None:
    """Exit at the end of the drain time without a word about the jobs that still run."""

    def drop(self: Any) -> None:
        if worker.draining.is_set():
            time.sleep(worker.DRAIN)
            os._exit(0)

    worker.Worker.drain = drop


BUGS: dict[str, Callable[[Any], None]] = {
    "no-renewal": no_renewal,
    "settles-twice": settles_twice,
    "ignores-cancel": ignores_cancel,
    "reuses-a-fence": reuses_a_fence,
    "drops-jobs-at-drain": drops_jobs_at_drain,
}


def main() -> None:
    """Run the worker with the bug."""
    spec = importlib.util.spec_from_file_location("worker", WORKER)
    assert spec is not None
    assert spec.loader is not None
    worker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(worker)
    BUGS[sys.argv[1]](worker)
    worker.main()


if __name__ == "__main__":
    main()
