"""The committed OpenAPI description, and the check for changes that break clients."""

import copy

import pytest

from tests.unit.openapi.breaking import breaking_changes
from tests.unit.openapi.golden import committed, current

DOCUMENT = current()


def test_the_committed_description_is_that_of_the_source():
    advice = "run .venv/bin/python -m tests.unit.openapi.golden and review the diff"
    assert breaking_changes(committed(), DOCUMENT) == [], advice
    assert committed() == DOCUMENT, advice


def job(document):
    return document["components"]["schemas"]["SubmitJob"]


CHANGES = {
    "an operation is removed": lambda d: d["paths"].pop("/v1/jobs/{id}/retry"),
    "an operation id changes": lambda d: d["paths"]["/v1/jobs"]["get"].update(operationId="find_jobs"),
    "a parameter is removed": lambda d: d["paths"]["/v1/jobs"]["get"]["parameters"].pop(),
    "a parameter is required": lambda d: d["paths"]["/v1/jobs"]["get"]["parameters"][0].update(required=True),
    "a body is required": lambda d: d["paths"]["/v1/jobs/{id}/cancel"]["post"]["requestBody"].update(required=True),
    "a response is removed": lambda d: d["paths"]["/v1/jobs"]["post"]["responses"].pop("201"),
    "a field of a request is required": lambda d: job(d)["required"].append("queue"),
    "a field of a request is removed": lambda d: job(d)["properties"].pop("tags"),
    "a bound is narrower": lambda d: job(d)["properties"]["cost"].update(maximum=5),
    "a new bound": lambda d: d["components"]["schemas"]["Problem"]["properties"]["detail"].update(maxLength=5),
    "a type changes": lambda d: job(d)["properties"]["cost"].update(type="string"),
    "a field of a response may be missing": lambda d: d["components"]["schemas"]["JobOut"]["required"].remove("id"),
    "a value is removed": lambda d: d["components"]["schemas"]["JobStatus"]["enum"].remove("dead"),
    "a schema is removed": lambda d: d["components"]["schemas"].pop("Outcome"),
    "another scope": lambda d: d["paths"]["/v1/jobs"]["get"].update({"x-scope": "admin"}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_that_breaks_clients_is_found(change):
    changed = copy.deepcopy(DOCUMENT)
    change(changed)
    assert breaking_changes(DOCUMENT, changed)


ADDITIONS = {
    "an operation": lambda d: d["paths"].update({"/v1/new": {"get": d["paths"]["/v1/jobs"]["get"]}}),
    "an optional field of a request": lambda d: job(d)["properties"].update(colour={"type": "string"}),
    "a field of a response": lambda d: d["components"]["schemas"]["JobOut"]["required"].append("colour"),
    "a value": lambda d: d["components"]["schemas"]["ProblemCode"]["enum"].append("tired"),
    "a wider bound": lambda d: job(d)["properties"]["cost"].update(maximum=10**8),
    "another text": lambda d: job(d).update(description="A job."),
}


@pytest.mark.parametrize("change", ADDITIONS.values(), ids=ADDITIONS)
def test_an_addition_breaks_no_client(change):
    changed = copy.deepcopy(DOCUMENT)
    change(changed)
    assert breaking_changes(DOCUMENT, changed) == []
