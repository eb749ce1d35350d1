"""Number of database connections that the processes of a node may open."""

SUPERVISOR_POOL_SIZE = 4
"""Size of each of the supervisor's two pools: one for leases, one for maintenance."""

_LISTENER = 1
"""Connection on which a process receives wake-ups."""


def max_connections(pool_size: int, *, services: int, supervisors: int, workers: int) -> int:
    """Return the largest number of connections of these processes together.

    A worker process has one pool for its own work and another one for the transactions of handlers, so that handlers
    cannot keep it from reporting their outcomes. Job processes are not counted: each opens a connection only while its
    handler uses steps, progress or a transaction.

    Args:
        pool_size: The setting `HOLDFAST_POOL_SIZE`.
        services: Processes that serve HTTP.
        supervisors: Supervisors of worker nodes.
        workers: Worker processes.
    """
    return (
        services * (pool_size + _LISTENER)
        + supervisors * 2 * SUPERVISOR_POOL_SIZE
        + workers * (2 * pool_size + _LISTENER)
    )
