"""The generated reference pages are up to date."""

import importlib.util
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def docs():
    spec = importlib.util.spec_from_file_location("tools_docs", CHECKOUT / "tools" / "docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", ["cli.md", "http.md", "metrics.md", "python.md", "settings.md", "states.md"])
def test_a_reference_page_is_up_to_date(docs, page):
    assert (docs.FOLDER / page).read_text() == docs.pages()[page], "run '.venv/bin/python tools/docs.py'"


def test_every_job_state_has_a_description(docs):
    assert list(docs.STATES) == list(docs.Status)
