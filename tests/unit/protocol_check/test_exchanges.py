"""Rules that hold for every request of a worker."""

import pytest

from holdfast.protocol_check import exchanges
from holdfast.protocol_check.exchanges import CLAIM, RENEW, SETTLE, RecordedExchange, longest_gap
from holdfast.protocol_check.rules import RuleBroken

WORKER = "w-0000000000000001"
JOB = "01a1e1cc-0000-7000-8000-000000000000"


class Conversation:
    """Exchanges, one second apart."""

    def __init__(self):
        self.exchanges = []
        self("", {"register": {}}, {"worker": WORKER, "jobs": []})

    def __call__(self, path, body, response=None, status=200):
        exchange = RecordedExchange("POST", CLAIM + path, body, float(len(self.exchanges)))
        exchange.status, exchange.response = status, response or {}
        exchange.ended = None if status is None else exchange.began + 0.5
        self.exchanges.append(exchange)
        return self

    def claim(self, fence, **options):
        return self("", {"worker": WORKER, **options}, {"worker": WORKER, "jobs": [{"id": JOB, "fence": fence}]})

    def settle(self, fence, status=200, **response):
        body = {"worker": WORKER, "outcomes": [{"id": JOB, "fence": fence, "outcome": "succeeded"}]}
        return self("/settle", body, response, status)

    def broken(self):
        """Return the rule that is broken; None if all are kept."""
        try:
            exchanges.check(self.exchanges)
        except RuleBroken as error:
            return error.rule.id
        return None


@pytest.fixture
def talk():
    return Conversation()


def test_each_claim_is_settled_once_with_its_own_fence(talk):
    assert talk.claim(1).settle(1).claim(2).settle(2).broken() is None


@pytest.mark.parametrize("status", [None, 429, 503])
def test_an_outcome_that_was_not_answered_is_sent_again(talk, status):
    assert talk.claim(1).settle(1, status).settle(1).broken() is None


def test_a_refused_outcome_may_be_corrected(talk):
    refused = [{"index": 0, "code": "invalid", "detail": "", "pointer": "/outcomes/0"}]
    assert talk.claim(1).settle(1, settled=[], refused=refused).settle(1).broken() is None


def test_an_answered_outcome_is_not_sent_again(talk):
    assert talk.claim(1).settle(1).settle(1).broken() == "settle-once"


def test_a_fence_of_an_earlier_claim_is_not_used_again(talk):
    assert talk.claim(1).settle(1).claim(2).settle(1).broken() == "fence"


def test_a_fence_that_the_worker_never_got_is_found(talk):
    assert talk.claim(1).settle(2).broken() == "fence"


def test_jobs_of_a_lost_claim_may_be_settled_once_they_are_listed(talk):
    talk("/held", {"worker": WORKER}, {"jobs": [{"id": JOB, "fence": 1}]})
    assert talk.settle(1).broken() is None


def test_a_worker_id_needs_a_registration(talk):
    assert talk("/renew", {"worker": "w-0000000000000002"}).broken() == "worker-id"


def test_a_worker_id_is_not_used_after_lease_lost(talk):
    talk("/renew", {"worker": WORKER}, {"code": "lease_lost"}, 409)
    assert talk.broken() is None
    assert talk("", {"worker": WORKER})("", {"worker": WORKER}).broken() == "worker-id"


def test_a_lost_job_does_not_end_the_worker(talk):
    talk.claim(1)("/progress", {"worker": WORKER, "id": JOB, "fence": 1}, {"code": "job_not_held"}, 409)
    assert talk("/renew", {"worker": WORKER})("/renew", {"worker": WORKER}).broken() is None


def test_a_request_that_the_node_refuses_is_invalid(talk):
    assert talk("/renew", {"worker": WORKER}, {"code": "invalid", "detail": "lease"}, 422).broken() == "valid"


def test_a_claim_with_a_lease_counts_as_a_renewal(talk):
    talk.claim(1, lease=5)("/renew", {"worker": WORKER}).claim(2)
    assert (talk.exchanges[1].renews, talk.exchanges[2].renews, talk.exchanges[3].renews) == (True, True, False)
    assert longest_gap(talk.exchanges, 7.0) == 5.0
    assert (RENEW, SETTLE) == (CLAIM + "/renew", CLAIM + "/settle")
