"""Default bounds of a tenant: what is admitted and what is rejected."""

from holdfast.errors import BacklogFull, OverLimit
from holdfast.policy.tenant_bounds import JobNames, TenantBounds, Usage, admit

BOUNDS = TenantBounds(backlog=3, queues=2, types=2)
A, B, C = (JobNames(name, name) for name in "abc")


def test_unfinished_jobs_are_bounded_unless_the_tenant_has_quotas() -> None:
    usage = Usage()
    assert admit(usage, BOUNDS, [A, A, B], has_quotas=False) is None
    assert isinstance(admit(usage, BOUNDS, [A], has_quotas=False), BacklogFull)
    assert admit(usage, BOUNDS, [A], has_quotas=True) is None
    assert usage.backlog == 4


def test_a_rejected_submission_does_not_count() -> None:
    usage = Usage()
    assert isinstance(admit(usage, BOUNDS, [A, B, C], has_quotas=False), OverLimit)
    assert (usage.backlog, usage.queues, usage.types) == (0, set(), set())
