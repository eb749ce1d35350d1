"""Linter for the project's language: openings, banned phrases, bound names and duplicate class names.

`python -m tests.architecture.language [path…]` lists the offences below the given paths (default: everything), then
their number per folder. `--hints` adds words that are often, but not always, wrong. The rules are explained in
`docs/contributing/style.md`; `test_language.py` runs them without the hints.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
PYTHON_FOLDERS = ("src", "tests", "bench", "tools")
SQL_FOLDERS = ("src", "tests", "bench")
TEXT_FOLDERS = {"dashboard/src": ("*.ts", "*.tsx", "*.css"), "deploy": ("*",), ".ci": ("*",)}
"""Folders whose files are checked as plain text, code included."""
GENERATED = {"dashboard/src/api/types.gen.ts"}
SKIPPED_FOLDERS = {".venv", ".git", "node_modules", "__pycache__", "dist"}

QUOTES_THE_PHRASES = {
    "tests/architecture/language.py",
    "tests/architecture/test_language.py",
    "docs/contributing/style.md",
}
"""Files that must spell the banned phrases in order to ban them."""

MAX_FIRST_LINE_CHARS = 90

BAD_OPENING = re.compile(r"(What|Whether|Whoever|Of|Those|That|Somebody|Nobody|Also|One)\b")
"""Openings of a docstring that hide its subject."""

BAD_SENTENCE = re.compile(
    r"(?:(?<=[.!?:] )|(?<=\n\n)|(?<=\n\* )|(?<=\d\. )|(?<=\*\*)|(?<=\| ))"
    r"(What|Whether|Whoever|Of|Those|That|Somebody|Nobody|Also)\b(?![^.|\n]*\?)"
)
"""Openings of a sentence in Markdown that hide its subject; questions are fine."""

BANNED = {
    r"at the most": "at most",
    r"at the least": "at least",
    r"also if": "even if",
    r"stands? (twice|in it|there)": "occurs twice, is in it",
    r"(tells?|telling|told) of": "reports",
    r"made of": "built from",
    r"forked of": "forked from",
    r"in the box": "built-in",
    r"whoever": "name the actor: caller, client, worker",
    r"somebody|nobody": "name the actor: caller, client, worker",
    r"(keeps?|keeping|kept) house|housekeeping": "maintenance",
    r"(is|are|was) no errors?": "is not an error",
    r"not any more": "no longer",
    r"resting|(it|that|which|queue|type|tenant|lane) rests": "paused",
    r"see the port": "inherit from the Protocol",
    r"at hand": "cached",
    r"anew|afresh": "again",
    r"thereby": "name the cause",
    r"by hand of": "by",
    r"one after the other": "one at a time, in turn",
    r"what is there": "name the thing",
    r"what there is": "name the thing",
    r"of no use": "useless, not needed",
    r"to the end of time|evermore": "forever",
    r"in vain": "without success",
    r"strikes? (it|them|out)|struck": "remove",
    r"(gives?|gave|given|giving) back": "release, return",
    r"mends?|mended|mending": "fix",
    r"so many": "a number",
    r"heard": "received, notified",
    r"for a while": "give the time",
    r"but for": "except for",
    r"who (fails|asks|comes|calls|waits)": "name the actor",
}
"""Phrases that must not occur, and the words to use. A space matches any white space, line breaks too."""

HINTS = {
    r"as well": "also, too",
    r"in the way": "blocking",
    r"of (its|their|his) own": "its own …",
    r"figures?": "stats, metrics",
    r"the others": "name them",
    r"lots?": "batch",
    r"told": "reported, said, notified",
    r"answer(s|ed)?": "response; return",
    r"news": "notification",
    r"feed": "change log",
    r"rests?": "is paused; the remainder",
    r"looks? (at|for|up) (all|every|each)": "scan",
    r"moves?": "transition",
    r"strikes?": "remove",
    r"come(s)? in": "arrive",
    r"who (reads|writes)": "name the actor",
    r"nor (is|are|does|do|has|have|can|may)": "simpler sentence",
    r"alone": "only",
}
"""Words to look at: many uses are fine."""

BAD_BOUND = re.compile(r"_*(MOST|LARGEST|LONGEST|LEAST)_\w+")

CLIENT = "value of the public client (holdfast.client); the server's class has the same meaning and other types"
DIALECT = "one implementation per database, never used together"

SAME_NAME_ALLOWED: dict[str, tuple[set[str], str]] = {
    "DeadFilter": ({"wire", "sdk"}, CLIENT),
    "DeadGroup": ({"model", "sdk"}, CLIENT),
    "Job": ({"model/job", "model/decoded_job"}, "job as it is stored; job as users see it, with the same meaning"),
    "JobDetail": ({"engine", "wire", "sdk"}, CLIENT),
    "JobFilter": ({"model", "sdk"}, CLIENT),
    "JobType": ({"model", "app", "sdk"}, "record of a type; public declaration of one; " + CLIENT),
    "LimitsTx": ({"store/mysql", "store/postgres"}, DIALECT),
    "LogLine": ({"model", "sdk"}, CLIENT),
    "Logs": ({"model", "sdk"}, CLIENT),
    "NewJob": ({"model", "sdk"}, CLIENT),
    "Queue": ({"model", "sdk"}, CLIENT),
    "Breaker": ({"model", "sdk"}, CLIENT),
    "Limit": ({"model", "sdk"}, CLIENT),
    "Pause": ({"model", "sdk"}, CLIENT),
    "Receipt": ({"engine", "sdk"}, CLIENT),
    "Sessions": ({"store/mysql", "store/postgres", "store/sqlite"}, DIALECT),
    "Stats": ({"wire", "sdk"}, CLIENT),
    "Step": ({"model", "sdk"}, CLIENT),
    "Summary": ({"wire", "sdk"}, CLIENT),
    "Tenant": ({"model", "sdk"}, CLIENT),
    "TransitionsTx": ({"store/mysql", "store/postgres"}, DIALECT),
    "Unique": ({"model", "app"}, "rule as it is stored; public option that accepts durations as text"),
    "Worker": ({"worker", "sdk"}, CLIENT),
}
"""Class names that may be defined once in each of these folders or modules of the package, and why."""


class Offence(NamedTuple):
    """Breach of a rule at a line of a file."""

    path: str
    """Relative to the repository."""
    line: int
    rule: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}"


COMMENT_MARKER = re.compile(r"^\s*(//|/?\*+|#)|(?<=\s)//(?=\s)", re.MULTILINE)
"""Start of a comment line, which may separate the words of a phrase."""


def _pattern(phrases: Iterable[str]) -> re.Pattern[str]:
    one_of = "|".join(f"(?:{phrase})" for phrase in phrases)
    return re.compile(rf"\b(?:{one_of})\b".replace(" ", r"\s+"), re.IGNORECASE)


BANNED_PATTERN = _pattern(BANNED)
HINTS_PATTERN = _pattern(HINTS)


def files(paths: Iterable[Path] = ()) -> list[Path]:
    """Return the files that the rules cover, below the given paths or in the whole repository."""
    found = [*ROOT.glob("*.md"), *_below(ROOT / "docs", "*.md"), *_below(ROOT / "deploy", "*.md")]
    found += [file for folder in PYTHON_FOLDERS for file in _below(ROOT / folder, "*.py")]
    found += [file for folder in PYTHON_FOLDERS for file in _below(ROOT / folder, "*.md")]
    found += [file for folder in SQL_FOLDERS for file in _below(ROOT / folder, "*.sql")]
    found += [
        file
        for folder, patterns in TEXT_FOLDERS.items()
        for pattern in patterns
        for file in _below(ROOT / folder, pattern)
        if file.is_file() and file.relative_to(ROOT).as_posix() not in GENERATED
    ]
    if (command := ROOT / "dev").is_file():
        found.append(command)
    chosen = [path.resolve() for path in paths]
    return sorted(file for file in set(found) if not chosen or any(file.is_relative_to(path) for path in chosen))


def _below(folder: Path, pattern: str) -> Iterator[Path]:
    return (file for file in folder.rglob(pattern) if not SKIPPED_FOLDERS & set(file.parts))


def check(file: Path, *, hints: bool = False) -> list[Offence]:
    """Return the offences of one file, apart from duplicate class names."""
    path = file.relative_to(ROOT).as_posix()
    text = file.read_text()
    if file.suffix == ".md":
        prose = text
    elif file.suffix == ".sql":
        prose = "\n".join(line.partition("--")[2] for line in text.split("\n"))
    elif is_python(file):
        prose = python_prose(text)
    else:
        prose = COMMENT_MARKER.sub(" ", text)
    found = []
    if path not in QUOTES_THE_PHRASES:
        found += [Offence(path, line, rule) for line, rule in banned_phrases(prose)]
        if hints:
            found += [Offence(path, line, rule) for line, rule in _phrases(prose, HINTS_PATTERN, HINTS, "hint")]
        if file.suffix == ".md":
            found += [Offence(path, line, rule) for line, rule in bad_sentences(prose)]
    if is_python(file):
        tree = ast.parse(text)
        found += [Offence(path, line, rule) for line, rule in bad_bounds(tree)]
        max_chars = MAX_FIRST_LINE_CHARS if file.is_relative_to(SOURCE) else None
        found += [Offence(path, line, rule) for line, rule in bad_docstrings(tree, max_chars)]
    return sorted(found)


def is_python(file: Path) -> bool:
    """Return whether a file is Python source; `dev` is, without a suffix."""
    return file.suffix == ".py" or file == ROOT / "dev"


def banned_phrases(prose: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the rule of each banned phrase in a text."""
    return _phrases(prose, BANNED_PATTERN, BANNED, "banned")


def _phrases(prose: str, pattern: re.Pattern[str], meant: dict[str, str], kind: str) -> Iterator[tuple[int, str]]:
    for match in pattern.finditer(prose):
        phrase = " ".join(match[0].split())
        advice = next(say for one, say in meant.items() if re.fullmatch(one, phrase, re.IGNORECASE))
        yield prose.count("\n", 0, match.start()) + 1, f"{kind} phrase {phrase!r}: write {advice!r}"


def bad_sentences(page: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the rule of each sentence in a Markdown text whose opening hides its subject."""
    blank = re.compile(r"^```.*?^```$|^#.*?$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
    prose = blank.sub(lambda code: re.sub(r"[^\n]", "x", code[0]), page)
    joined = re.sub(r"(?<!\n)\n(?![\n*#|]|\d+\.)", " ", prose)  # one character for one, so that positions stay
    for match in BAD_SENTENCE.finditer(joined):
        yield page.count("\n", 0, match.start()) + 1, f"sentence starts with {match[0]!r}: start with the subject"


def python_prose(text: str) -> str:
    r"""Return a Python source with everything but its comments, strings and test names blanked out.

    Lines keep their numbers. Code becomes NUL characters, so that a phrase never matches across two strings that code
    separates; quotes and `#` become spaces, so that it does match across the lines of one text.
    """
    lines = text.split("\n")
    prose = [["\0" if not char.isspace() else char for char in line] for line in lines]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind, words = tokenize.tok_name[token.type], token.string
        if kind == "COMMENT":
            words = words.replace("#", " ")
        elif kind == "STRING":
            words = re.sub(
                r"^[rRbBfFuU]*(\"\"\"|'''|\"|')|(\"\"\"|'''|\"|')$", lambda quote: " " * len(quote[0]), words
            )
        elif kind in {"FSTRING_START", "FSTRING_END"}:
            words = " " * len(words)
        elif kind == "NAME" and words.startswith("test_"):
            words = words.replace("_", " ")
        elif kind != "FSTRING_MIDDLE":
            continue
        row, column = token.start
        for offset, line in enumerate(words.split("\n")):
            prose[row - 1 + offset][column : column + len(line)] = line
            column = 0
    return "\n".join("".join(line) for line in prose)


def bad_docstrings(tree: ast.Module, max_chars: int | None = MAX_FIRST_LINE_CHARS) -> Iterator[tuple[int, str]]:
    """Yield the line and the rule of each docstring, of attributes too, whose first line breaks a rule."""
    for node in ast.walk(tree):
        for statement in getattr(node, "body", []) if not isinstance(node, ast.Lambda | ast.IfExp) else []:
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text)), lineno=line):
                    first = text.strip().partition("\n")[0]
                    if opening := BAD_OPENING.match(first):
                        yield line, f"docstring starts with {opening[0]!r}: start with a verb or a noun"
                    if max_chars is not None and len(first) > max_chars:
                        yield line, f"docstring's first line has {len(first)} characters, more than {max_chars}"


def bad_bounds(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the rule of each use of a name such as MOST_JOBS."""
    for node in ast.walk(tree):
        name = {ast.Name: "id", ast.Attribute: "attr", ast.alias: "name", ast.keyword: "arg"}.get(type(node))
        if name and BAD_BOUND.fullmatch(found := getattr(node, name) or ""):
            yield node.lineno, f"bound {found!r}: name it MAX_… or MIN_…, with its unit"  # type: ignore[attr-defined]


def duplicate_classes() -> list[Offence]:
    """Return every definition in src of a class name that is defined more than once and not allowed to be."""
    return [
        Offence(path, line, f"class {name!r} is defined {len(found)} times in src: give each meaning its own name")
        for name, found in sorted(classes().items())
        if len(found) > 1 and not _is_allowed(name, [path for path, _ in found])
        for path, line in found
    ]


def classes() -> dict[str, list[tuple[str, int]]]:
    """Return the places in src at which each class name is defined."""
    places: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for file in _below(SOURCE, "*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name].append((file.relative_to(ROOT).as_posix(), node.lineno))
    return places


def _is_allowed(name: str, paths: list[str]) -> bool:
    """Return whether each of these paths is in a folder or module of its own that may define the name."""
    folders, _ = SAME_NAME_ALLOWED.get(name, (set(), ""))
    starts = {folder: (f"src/holdfast/{folder}/", f"src/holdfast/{folder}.py") for folder in folders}
    inside = [folder for path in paths for folder in folders if path.startswith(starts[folder])]
    return len(inside) == len(set(inside)) == len(paths)


def main() -> int:
    """List the offences, then their number per folder. The exit code is 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, help="files or folders; default: the whole repository")
    parser.add_argument("--hints", action="store_true", help="list words too that are often wrong")
    parser.add_argument("--count", action="store_true", help="print only the numbers")
    arguments = parser.parse_args()

    chosen = files(arguments.paths)
    inside = {file.relative_to(ROOT).as_posix() for file in chosen}
    found = []
    for file in chosen:
        if not file.exists():  # moved since it was listed
            continue
        try:
            found += check(file, hints=arguments.hints)
        except (SyntaxError, tokenize.TokenError) as error:
            found.append(Offence(file.relative_to(ROOT).as_posix(), getattr(error, "lineno", 0) or 0, str(error)))
    found += [offence for offence in duplicate_classes() if offence.path in inside]
    if not arguments.count:
        for offence in found:
            print(offence)  # noqa: T201 - a command
    for folder, number in sorted(Counter(offence.path.rpartition("/")[0] or "." for offence in found).items()):
        print(f"{number:6} {folder}")  # noqa: T201
    print(f"{len(found):6} in all")  # noqa: T201
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
