"""The committed build is that of the committed source. None of this needs Node, but for the last."""

import gzip
import json
import os
import re
import shutil

import pytest

from tools import dashboard
from tools.dashboard_types import generate

LARGEST_FIRST_PAINT = 150 * 1024
REBUILD = "run ./dev dashboard, and commit what it writes"


@pytest.fixture(scope="module")
def record():
    return json.loads((dashboard.BUILT / dashboard.RECORD).read_text())


def test_the_types_are_those_of_the_api():
    assert dashboard.TYPES.read_text() == generate(), "the API changed: run ./dev dashboard --types (it needs no Node)"


def test_the_build_was_made_of_this_source(record):
    assert record["source"] == dashboard.source_hash(), f"the source of the dashboard changed: {REBUILD}"


def test_the_build_is_as_it_was_made(record):
    assert dashboard.built_hashes() == record["files"], f"the built files were changed: {REBUILD}"


def test_the_hash_of_the_source_sees_every_change(tmp_path, monkeypatch):
    copy = tmp_path / "dashboard"
    shutil.copytree(dashboard.SOURCE, copy, ignore=shutil.ignore_patterns("node_modules"))
    monkeypatch.setattr(dashboard, "SOURCE", copy)
    before = dashboard.source_hash()
    (copy / "src" / "main.tsx").rename(copy / "src" / "other.tsx")
    renamed = dashboard.source_hash()
    (copy / "package-lock.json").write_text("{}")
    assert len({before, renamed, dashboard.source_hash()}) == 3


def test_the_page_needs_no_more_than_150_kb_of_script_before_it_shows():
    """Everything that the overview loads before it can be read: the entry, what it imports, and the page itself."""
    folder = dashboard.BUILT / "assets"
    entry = re.search(r'src="\./assets/([^"]+\.js)"', (dashboard.BUILT / "index.html").read_text())[1]
    page = next(each.name for each in folder.glob("Overview-*.js"))
    needed, rest = set(), [entry, page]
    while rest:
        name = rest.pop()
        if name in needed:
            continue
        needed.add(name)
        code = (folder / name).read_text()
        rest += re.findall(r'(?:from|import)\s*"\./([^"]+\.js)"', code)  # `import("…")` comes later, when it is wanted
    size = sum(len(gzip.compress((folder / name).read_bytes())) for name in needed)
    assert len(needed) >= 3
    assert size <= LARGEST_FIRST_PAINT, f"{size:,} bytes: {sorted(needed)}"


def test_the_page_has_nothing_inline_and_no_foreign_host():
    """T27."""
    page = (dashboard.BUILT / "index.html").read_text()
    assert not re.findall(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\bsrc=)", page)
    assert re.findall(r'(?:src|href)="([^"]+)"', page)
    assert not [
        each for each in re.findall(r'(?:src|href)="([^"]+)"', page) if not each.startswith(("./", "data:", "docs"))
    ]


def test_the_lock_names_no_registry():
    lock = json.loads((dashboard.SOURCE / "package-lock.json").read_text())
    assert not [name for name, package in lock["packages"].items() if "resolved" in package]


@pytest.mark.skipif(not os.environ.get("HOLDFAST_LONG_TESTS"), reason="HOLDFAST_LONG_TESTS is not set")
@pytest.mark.timeout(600)
def test_building_again_gives_the_same_bytes(tmp_path):
    if dashboard.node_version() is None:
        pytest.skip("there is no Node here")
    dashboard.build(tmp_path / "built")
    assert dashboard.built_hashes(tmp_path / "built") == dashboard.built_hashes()
