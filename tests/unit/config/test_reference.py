"""The pages that are made from code say what the code says."""

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
def test_a_page_is_as_the_code_makes_it(docs, page):
    assert (docs.FOLDER / page).read_text() == docs.pages()[page], "run '.venv/bin/python tools/docs.py'"


def test_every_state_is_explained(docs):
    assert list(docs.STATES) == list(docs.Status)
