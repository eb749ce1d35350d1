"""The OpenAPI constraints across several fields agree with what the service enforces."""

import json
import re
from html import unescape

import pytest

from holdfast.api.docs_page import page, with_address
from holdfast.api.openapi.document import describe
from holdfast.api.routes import ALL
from tests.support.openapi import validator

pytestmark = pytest.mark.databases("sqlite")

AT = "2099-01-31T12:00:00Z"
DOCUMENT = describe(ALL, "0")

BODIES = [
    ("POST", "/v1/jobs", [{"type": "a", "delay": 1}, {"type": "a", "delay": None, "scheduled_at": AT}],
     [{"type": "a", "delay": 1, "scheduled_at": AT}, {"type": "a", "delay": -1}, {"type": "a", "delay": "soon"},
      {"type": "a", "delay": 1e12}, {"type": "a", "tags": ["a\n"]}]),
    ("POST", "/v1/jobs/batch", [{"jobs": [{"type": "a", "delay": "1h30m", "idempotency_key": "a b"}]}],
     [{"jobs": [{"type": "a", "delay": "1h", "scheduled_at": AT}]}, {"jobs": [{"type": "a", "idempotency_key": "ü"}]}]),
    ("POST", "/v1/keys", [{"name": "k", "scopes": ["read"], "expires_in": " 5m "}],
     [{"name": "k", "scopes": ["read"], "expires_in": 60, "expires_at": AT}]),
    ("PUT", "/v1/pauses", [{"type": "a"}, {"type": None, "tenant": "b"}],
     [{}, {"type": None}, {"type": "a", "tenant": "b"}, {"reason": "x"}]),
    ("PUT", "/v1/limits", [{"queue": "a"}, {"tenant": "a"}, {"tenant": "a", "concurrency_key": "k", "queue": None}],
     [{}, {"queue": "a", "tenant": "a"}, {"concurrency_key": "k"}, {"queue": "a", "concurrency_key": "k"}]),
    ("POST", "/v1/jobs/cancel", [{"all": True}, {"filter": {"queue": "a"}}, {"filter": {"tenant": "a"}, "all": True}],
     [{}, {"filter": {}}, {"filter": {"tenant": "a"}}, {"filter": {"queue": None}}, {"all": False}]),
    ("POST", "/v1/jobs/retry", [{"filter": {"status": "dead"}, "dry_run": True}], [{"dry_run": True}]),
    ("POST", "/v1/dead/replay",
     [{"ids": ["018bcfe5-6800-7000-8000-000000000000"], "filter": {"tenant": "a"}}, {"all": True},
      {"filter": {"type": "a"}, "ids": None}],
     [{}, {"ids": ["018bcfe5-6800-7000-8000-000000000000"], "all": True}, {"filter": {"tenant": "a"}}, {"ids": None},
      {"ids": ["018bcfe5-6800-7000-8000-000000000000"], "filter": {"type": "a"}}]),
]  # fmt: skip


def example(method, path):
    """Return the example body in `/docs`."""
    shown = unescape(page(ALL, "0").decode())
    (given,) = re.findall(rf"curl -X {method} [^<]*-d '([^']*)' \"\$HOLDFAST_API_URL{path}\"<", shown)
    return json.loads(given)


async def test_every_example_of_a_request_works_as_it_stands(served):
    """Examples name objects that a new node does not have: that is the only reason to refuse one."""
    admin = await served.client()
    refused = {}
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            filled = path
            for parameter in operation["parameters"]:
                if parameter["in"] == "path":
                    filled = filled.replace(f"{{{parameter['name']}}}", parameter["example"])
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
            if operation["operationId"] == "stream_events":
                continue
            query = {
                each["name"]: each["example"]
                for each in operation["parameters"]
                if each["in"] == "query" and "example" in each
            }
            answer = await admin.request(method.upper(), filled, json=body, params=query)
            if not answer.is_success and answer.json()["code"] not in EXPECTED_CODES:
                refused[operation["operationId"]] = answer.text
    assert refused == {}


EXPECTED_CODES = {"not_found", "no_such_route", "lease_lost", "unauthorized", "no_jwt_secret", "conflict"}
"""No such object; a worker that is not registered; a ticket that was not issued; no secret to sign tokens with."""


async def test_every_example_of_a_query_parameter_is_accepted(served):
    """`window=30` was an example of a window that must be a minute long."""
    admin = await served.client()
    schemas = DOCUMENT["components"]["schemas"]
    tried = 0
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            for parameter in operation["parameters"]:
                named = schemas.get(parameter["schema"].get("$ref", "").rpartition("/")[2], parameter["schema"])
                for value in named.get("examples", ()):
                    tried += 1
                    answer = await admin.request(
                        method.upper(), path.format(name="acme"), params={parameter["name"]: value}
                    )
                    assert answer.is_success, (path, parameter["name"], value, answer.text)
    assert tried >= 10


async def test_bounds_of_durations_are_those_of_the_service(served):
    admin = await served.client()
    for path, name in (("/v1/analytics", "AnalyticsWindow"), ("/v1/analytics/fairness", "FairnessWindow")):
        number = DOCUMENT["components"]["schemas"][name]["anyOf"][0]
        for value in (number["minimum"], number["maximum"]):
            assert (await admin.get(path, params={"window": value})).status_code == 200
        for value in (number["minimum"] - 1, number["maximum"] + 1):
            assert (await admin.get(path, params={"window": value})).status_code == 422


async def test_the_description_has_the_address_of_the_node(served):
    client = await served.client()
    answer = await client.get("/openapi.json", headers={"Host": "jobs.example.org:8443", "X-Forwarded-Proto": "https"})
    assert answer.json()["servers"][0]["url"] == "https://jobs.example.org:8443"


@pytest.mark.parametrize("method, path, good, bad", BODIES, ids=[f"{method} {path}" for method, path, *_ in BODIES])
async def test_constraints_across_fields_match_the_service(served, method, path, good, bad):
    """T17: what is refused is described as wrong, and the other way round."""
    admin = await served.client()
    body = DOCUMENT["paths"][path][method.lower()]["requestBody"]
    described = validator(DOCUMENT, body["content"]["application/json"]["schema"])
    assert body["required"]
    for each in [*good, example(method, path)]:
        answer = await admin.request(method, path, json=each)
        assert (described.is_valid(each), answer.is_success) == (True, True), each
    for each in bad:
        answer = await admin.request(method, path, json=each)
        assert (described.is_valid(each), answer.status_code) == (False, 422), each


async def test_examples_show_the_address_by_which_the_caller_reached_the_node(served):
    client = await served.client()
    answer = await client.get("/docs", headers={"Host": "jobs.example.org:8443", "X-Forwarded-Proto": "https"})
    assert "https://jobs.example.org:8443/v1/jobs" in answer.text
    assert "$HOLDFAST_API_URL" not in answer.text
    assert "http://127.0.0.1:8080/v1/jobs" in (await client.get("/docs", headers={"Host": "127.0.0.1:8080"})).text


@pytest.mark.parametrize("host", [b"", b"<script>", b"a b", b"a'b", b"x$(id)", b"a/b", b"user@a", b"a:port", b"[::1"])
def test_a_host_that_is_no_plain_name_does_not_enter_the_page(host):
    """T27"""
    rendered = page(ALL, "0")
    assert with_address(rendered, host, "", https=False) == rendered


@pytest.mark.parametrize("host", [b"localhost", b"10.0.0.1:80", b"[::1]:8080", b"jobs.example.org"])
def test_a_plain_host_and_the_path_prefix_enter_the_examples(host):
    shown = with_address(page(ALL, "0"), host, "/jobs", https=False)
    assert b"http://" + host + b"/jobs/v1/jobs" in shown
