"""The committed dashboard build matches its source. Only the last test needs Node."""

import gzip
import json
import os
import re
import shutil

import pytest

from tools import dashboard
from tools.dashboard_types import generate

MAX_FIRST_PAINT_BYTES = 150 * 1024
REBUILD = "run ./dev dashboard and commit the result"


@pytest.fixture(scope="module")
def record():
    return json.loads((dashboard.BUILT / dashboard.RECORD).read_text())


def test_the_types_match_the_api():
    assert dashboard.TYPES.read_text() == generate(), "the API changed: run ./dev dashboard --types (it needs no Node)"


def test_the_build_matches_the_source(record):
    assert record["source"] == dashboard.source_hash(), f"the source of the dashboard changed: {REBUILD}"


def test_the_built_files_are_unchanged(record):
    assert dashboard.built_hashes() == record["files"], f"the built files were changed: {REBUILD}"


def test_the_source_hash_changes_with_every_change(tmp_path, monkeypatch):
    copy = tmp_path / "dashboard"
    shutil.copytree(dashboard.SOURCE, copy, ignore=shutil.ignore_patterns("node_modules"))
    monkeypatch.setattr(dashboard, "SOURCE", copy)
    before = dashboard.source_hash()
    (copy / "src" / "main.tsx").rename(copy / "src" / "other.tsx")
    renamed = dashboard.source_hash()
    (copy / "package-lock.json").write_text("{}")
    assert len({before, renamed, dashboard.source_hash()}) == 3


def test_the_page_loads_at_most_150_kb_of_script_before_it_shows():
    """Counts the entry point, its static imports and the overview page."""
    folder = dashboard.BUILT / "assets"
    entry = re.search(r'src="\./assets/([^"]+\.js)"', (dashboard.BUILT / "index.html").read_text())[1]
    page = next(file.name for file in folder.glob("Overview-*.js"))
    needed, pending = set(), [entry, page]
    while pending:
        name = pending.pop()
        if name in needed:
            continue
        needed.add(name)
        code = (folder / name).read_text()
        pending += re.findall(r'(?:from|import)\s*"\./([^"]+\.js)"', code)  # `import("…")` is loaded on demand
    size = sum(len(gzip.compress((folder / name).read_bytes())) for name in needed)
    assert len(needed) >= 3
    assert size <= MAX_FIRST_PAINT_BYTES, f"{size:,} bytes: {sorted(needed)}"


def test_the_page_has_no_inline_code_and_no_other_host():
    """T27."""
    page = (dashboard.BUILT / "index.html").read_text()
    assert not re.findall(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\bsrc=)", page)
    assert re.findall(r'(?:src|href)="([^"]+)"', page)
    assert not [
        link for link in re.findall(r'(?:src|href)="([^"]+)"', page) if not link.startswith(("./", "data:", "docs"))
    ]


def test_the_lock_file_names_no_registry():
    lock = json.loads((dashboard.SOURCE / "package-lock.json").read_text())
    assert not [name for name, package in lock["packages"].items() if "resolved" in package]


@pytest.mark.skipif(not os.environ.get("HOLDFAST_LONG_TESTS"), reason="HOLDFAST_LONG_TESTS is not set")
@pytest.mark.timeout(600)
def test_a_rebuild_produces_the_same_bytes(tmp_path):
    if dashboard.node_version() is None:
        pytest.skip("Node is not installed")
    dashboard.build(tmp_path / "built")
    assert dashboard.built_hashes(tmp_path / "built") == dashboard.built_hashes()
