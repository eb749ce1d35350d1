"""Rewrite the "Covered by" lines of docs/reliability.md from the tests: `.venv/bin/python tools/reliability.py`.

A test module covers a number such as S7 or P22 if one of its docstrings, comments or strings cites it. With `--check`,
nothing is written; the problems are listed, and the exit code is 1 if there are any.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reliability.md"
TESTS = ROOT / "tests"
QUOTES_THE_NUMBERS = TESTS / "architecture" / "test_reliability.py"
"""Test of this program: it spells numbers without testing what they stand for."""
REASONS = "## Numbers without a test"
LINE_CHARS = 120

_CITATION = re.compile(r"(?<![\w%/.#-])([SLCWMDPFT])(\d{1,2})(?:[–-](?:\1)?(\d{1,2}))?(?![\w%-])")
"""A number, or a range such as S1–S8. Neither a part of a word, of a path nor of an escaped URL."""

_ENTRY = re.compile(r"^### ([A-Z]\d+)\n", re.MULTILINE)
_COVERED_BY = re.compile(r"\n*^Covered by: .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(\.\./(tests/[^)]+)\)")
_ROW = re.compile(r"^\| ([A-Z]\d[^|]*) \| ([^|]+) \|$", re.MULTILINE)


class Catalogue(NamedTuple):
    """The numbers that the page defines, and its reasons for those that have no test."""

    numbers: list[str]
    reasons: dict[str, str]


def numbers_in(text: str) -> Iterator[str]:
    """Yield the numbers that a text cites, as the page spells them: S7, P07."""
    for letter, first, last in _CITATION.findall(text):
        for number in range(int(first), int(last or first) + 1):
            yield f"{letter}{number:02d}" if letter in "PFT" else f"{letter}{number}"


def cited(source: str) -> set[str]:
    """Return the numbers that the docstrings, comments and strings of a Python source cite."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    kinds = {"COMMENT", "STRING", "FSTRING_MIDDLE"}
    return {number for token in tokens if tokenize.tok_name[token.type] in kinds for number in numbers_in(token.string)}


def citations(modules: Iterable[Path] | None = None) -> dict[str, list[Path]]:
    """Return the test modules that cite each number, sorted. The default is all modules below tests/."""
    found: dict[str, list[Path]] = defaultdict(list)
    for module in sorted(modules if modules is not None else set(TESTS.rglob("test_*.py")) - {QUOTES_THE_NUMBERS}):
        for number in cited(module.read_text()):
            found[number].append(module)
    return found


def read(page: str) -> Catalogue:
    """Return the catalogue of a page."""
    entries, _, table = page.partition(REASONS)
    reasons = {number: reason for spelt, reason in _ROW.findall(table) for number in numbers_in(spelt)}
    return Catalogue(_ENTRY.findall(entries), reasons)


def links(page: str) -> dict[str, list[Path]]:
    """Return the test modules that each entry of a page links to."""
    entries = page.partition(REASONS)[0]
    _, *parts = _ENTRY.split(entries)
    return {
        number: [ROOT / path for path in _LINK.findall(body)]
        for number, body in zip(parts[::2], parts[1::2], strict=True)
    }


def rewrite(page: str, covered: dict[str, list[Path]]) -> str:
    """Return the page with the "Covered by" line of each entry taken from the citations."""
    entries, heading, table = page.partition(REASONS)
    head, *parts = _ENTRY.split(entries)
    written = [head]
    for number, body in zip(parts[::2], parts[1::2], strict=True):
        entry, next_section, rest = _COVERED_BY.sub("", body).partition("\n## ")
        written.append(f"### {number}\n{entry.rstrip()}\n\n{_covered_by(covered.get(number, []))}\n\n")
        written.append(f"{next_section.lstrip()}{rest}")
    return "".join(written) + heading + table


def _covered_by(modules: list[Path]) -> str:
    if not modules:
        return "Covered by: no test ([reason](#numbers-without-a-test))"
    links = [f"[{module.stem.removeprefix('test_')}](../{module.relative_to(ROOT).as_posix()})" for module in modules]
    lines = [f"Covered by: {links[0]}"]
    for link in links[1:]:
        if len(lines[-1]) + len(link) + 4 > LINE_CHARS:
            lines[-1] += " ·"
            lines.append(link)
        else:
            lines[-1] += f" · {link}"
    return "\n".join(lines)


def problems(page: str, covered: dict[str, list[Path]]) -> list[str]:
    """Return one sentence for each rule that the page or a test breaks."""
    numbers, reasons = read(page)
    known, tested = set(numbers), set(covered)
    found = [f"{number} is defined twice" for number in sorted(known) if numbers.count(number) > 1]
    found += [
        f"{module.relative_to(ROOT)} cites {number}, which docs/reliability.md does not define"
        for number in sorted(tested - known)
        for module in covered[number]
    ]
    found += [f"{number} has a reason, but is not defined" for number in sorted(set(reasons) - known)]
    found += [
        f"{number} has neither a test that cites it nor a row in 'Numbers without a test'"
        for number in sorted(known - tested - set(reasons))
    ]
    found += [
        f"{number} is cited by a test: remove its row from 'Numbers without a test'"
        for number in sorted(set(reasons) & tested)
    ]
    if page != rewrite(page, covered):
        found.append("docs/reliability.md is out of date: run .venv/bin/python tools/reliability.py")
    return found


def main() -> int:
    """Rewrite the page, or only check it, and print the problems that remain."""
    covered = citations()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(rewrite(PAGE.read_text(), covered))
    found = problems(PAGE.read_text(), covered)
    for problem in found:
        print(problem)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
