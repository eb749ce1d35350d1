"""Run every code block of the documentation."""

import json
import os
import re
import shlex

import click
import pytest

from holdfast.cli.main import cli
from tests.support.docs_runner import CHECKOUT, Reader, blocks, checkout, matches, pages

ELSEWHERE = {
    "python.md": "tests/unit/sdk/test_guide.py",
    "client.md": "tests/unit/sdk/test_client.py",
}
"""Pages whose Python blocks have their own test, because they need a worker."""

GENERATED = {"cli.md": {"sh"}, "states.md": {"mermaid"}, "metrics.md": {"yaml"}}
"""Generated pages, which another test compares with the code."""

LINK = re.compile(r"""(?:\]\(|src(?:set)?=")([^)\s"]+)[)"]""")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
RUN = {"sh", "python", "json", "yaml"}


@pytest.fixture
def clone(tmp_path):
    """Clone of the checkout."""
    return checkout(tmp_path)


@pytest.fixture
def reader(clone):
    """Reader in the clone, without settings of holdfast."""
    ours = ("HOLDFAST_", "DATABASE_URL", "DB_DSN", "PORT")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    path = f"{clone / '.venv' / 'bin'}:{plain['PATH']}"
    reader = Reader(clone, plain | {"COLUMNS": "110", "PATH": path})
    yield reader
    assert not any(reader.close())


def test_every_block_is_run_or_marked_as_text():
    bad = []
    for page in pages():
        allowed = {"text"} | (GENERATED.get(page.name) or ({"python"} if page.name in ELSEWHERE else RUN))
        bad += [
            f"{page.name}:{block.line} {block.language!r}" for block in blocks(page) if block.language not in allowed
        ]
    assert not bad, "use `text`, or a language that is run"
    for name, test in ELSEWHERE.items():
        assert name in (CHECKOUT / test).read_text()


def test_every_link_has_a_target():
    broken = [
        f"{page.relative_to(CHECKOUT)}: {place}"
        for page in [*pages(), *CHECKOUT.glob("*.md")]
        for place in LINK.findall(FENCED.sub("", page.read_text()))
        if "://" not in place and not (page.parent / place.partition("#")[0]).exists()
    ]
    assert not broken


def test_the_tutorial_runs_on_a_new_clone(reader):
    reader.read(CHECKOUT / "docs" / "tutorial.md")


@pytest.mark.timeout(600)  # runs the examples of all pages
def test_the_readme_and_the_guides_run(reader):
    *_, lines, commands = reader.read(CHECKOUT / "README.md")
    submitted, job, cancelled, listed, dead, replay, stats, *stream = lines.splitlines()
    assert json.loads(submitted)["status"] == "scheduled"
    assert json.loads(job)["attempt_log"] == []
    assert (json.loads(cancelled)["status"], json.loads(cancelled)["reason"]) == ("cancelled", "no longer needed")
    assert {item["status"] for item in json.loads(listed)["items"]} <= {"succeeded"}
    assert "groups" in json.loads(dead)
    assert json.loads(replay)["changed"] == 0
    assert json.loads(stats)
    assert any(line.startswith("event: job") for line in stream), stream
    assert '"hello"\n' in commands
    assert all(re.search(rf"^ *ok +{check}", commands, re.MULTILINE) for check in ("schema", "workers"))

    url = (reader.folder / ".holdfast" / "url").read_text().strip()
    reader.environment |= {"HOLDFAST_PORT": "0"}
    addresses = {"http://localhost:8080": url, "localhost:8080": url}
    for page in pages():
        if page.parent.name in ("guide", "how-it-works") and page.name not in ELSEWHERE:
            reader.read(page, addresses)


@pytest.mark.parametrize(
    "output, expected, same",
    [
        ("a  b\n", "a b", True),
        ("id 7\nrest\nmore\nend\n", "id …\n…\nend", True),
        ("id 7\nend\n", "id …\n…\nend", True),
        ("one\ntwo\n", "one", False),
        ("two\n", "one", False),
    ],
)
def test_output_is_compared_with_the_expected_text(output, expected, same):
    assert matches(output, expected) is same


EXAMPLE = re.compile(r"^holdfast (.*)$", re.MULTILINE)


def test_the_examples_of_the_cli_reference_are_valid_commands():
    lines = [line for block in blocks(CHECKOUT / "docs/reference/cli.md") for line in EXAMPLE.findall(block.text)]
    assert len(lines) > 50
    for line in lines:
        words = shlex.split(line, comments=True)
        end = next((n for n, word in enumerate(words) if word[0] in "|>;&"), len(words))
        command, context, rest = cli, click.Context(cli), words[:end]
        while isinstance(command, click.Group) and rest and rest[0] in command.list_commands(context):
            command, rest = command.get_command(context, rest[0]), rest[1:]
        command.make_context("", rest, parent=context)
