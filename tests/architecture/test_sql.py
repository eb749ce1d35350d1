"""Checks of the SQL files: the dialects agree, and statements name the indexes they use."""

import ast
import re
from typing import NamedTuple

import pytest

from holdfast.store.migrate import migrations
from holdfast.store.statements import Statements
from tests.architecture.source import DIALECTS, PACKAGE, Module, dotted, modules

CHOSEN_AT_RUN_TIME = {
    f"{query}_{table}"
    for query in ("window", "find")
    for table in ("live", "dead", "dead_of", "dead_alike", "history", "history_of")
}
"""Statements whose names the shared code computes."""

REPLACED = {"mysql": {"held_attempts", "held_by", "lock_held_by", "orphans", "overdue"}, "postgres": {"queue_backlog"}}
"""Statements of the shared code that a dialect lacks because it overrides the method that runs them."""

HOT = {
    "postgres": {
        "claim",
        "finish",
        "requeue",
        "lock_expired",
        "lock_expired_worker",
        "promote",
        "lanes",
        "renew",
        "held_by",
        "lock_held_by",
        "get",
        "overdue",
    },
    "mysql": {
        "lock_deadlines",
        "claim_lane",
        "lock_live",
        "lock_expired",
        "lock_expired_worker",
        "lock_due",
        "lanes",
        "renew",
        "claims_of",
        "held_by_ids",
        "lock_held_by_ids",
        "get",
    },
    "sqlite": {
        "claim",
        "finish_history",
        "delete_live",
        "requeue",
        "lock_expired",
        "lock_expired_worker",
        "due",
        "lanes",
        "renew",
        "held_by",
        "lock_held_by",
        "get",
        "overdue",
    },
}
"""Statements that run constantly or over all jobs; each must name the index that it uses."""


INDEX_COMMENT = re.compile(r"^-- Uses (.*)", re.MULTILINE)

COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)

CODED = r"\b(?:status|of_status|was|becomes|parked|kind|state)(?:::int)?"
"""Columns that hold codes."""

BARE_CODE = re.compile(
    rf"{CODED}\s*(?:=|<>|!=|<=|>=|<|>)\s*\d"  # status = 1
    rf"|{CODED}\s+(?:NOT\s+)?IN\s*\(\s*\d"  # status IN (5, 6)
    rf"|{CODED}\s+BETWEEN\s+\d"
    rf"|CASE\s+(?:\w+\.)?{CODED}\s+WHEN\s+\d"  # CASE status WHEN 1
    rf"|WHEN\s+\d+\s+THEN"
    rf"|\b\d+\s*(?:=|<>|!=|<=|>=|<|>)\s*(?:\w+\.)?{CODED}"
    rf"|\bslots\s*&\s*\d",
    re.IGNORECASE,
)
"""A number where an SQL file should write the name of a code, such as `{RUNNING}`."""


class Call(NamedTuple):
    """A call that runs a named statement."""

    statement: str
    parameters: frozenset[str] | None
    """Names of the parameters passed; None if they are unpacked from a mapping."""


def statements(dialect: str) -> Statements:
    return Statements(dialect, placeholder=lambda name, _: f":{name}", clock="clock()")


def calls(module: Module) -> list[Call]:
    """Return the calls in a module that run a statement by its literal name."""
    found = []
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call) or dotted(node.func).rsplit(".", 1)[-1] not in {"rows", "count"}:
            continue
        if node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
            names = [keyword.arg for keyword in node.keywords]
            parameters = None if None in names else frozenset(name for name in names if name)
            found.append(Call(node.args[0].value, parameters))
    return found


def shared_calls() -> list[Call]:
    """Return the calls in the code that all dialects share."""
    found = [call for module in modules("store/sql") for call in calls(module)]
    assert found, "no calls in store/sql: has the folder moved?"
    return found


def texts(dialect: str) -> dict[str, str]:
    """Return the text of each statement, with its comments."""
    found: dict[str, str] = {}
    for folder in ("common", f"{dialect}/sql"):
        for file in sorted((PACKAGE / "store" / folder).glob("*.sql")):
            pieces = re.split(r"^-- name: *(\w+) *$", file.read_text(), flags=re.MULTILINE)
            found |= dict(zip(pieces[1::2], pieces[2::2], strict=True))
    return found


def schema(dialect: str) -> str:
    return "\n".join(step.sql for step in migrations(dialect))


@pytest.mark.parametrize("dialect", DIALECTS)
class TestDialect:
    def test_dialect_has_every_statement_that_shared_code_runs(self, dialect: str) -> None:
        needed = {call.statement for call in shared_calls()} | CHOSEN_AT_RUN_TIME

        assert needed - set(statements(dialect)) == REPLACED.get(dialect, set())

    def test_shared_code_passes_every_parameter(self, dialect: str) -> None:
        required = statements(dialect).names()
        for name, passed in shared_calls():
            if passed is not None and name in required:
                assert required[name] <= passed, name

    def test_dialect_code_runs_existing_statements_with_every_parameter(self, dialect: str) -> None:
        required = statements(dialect).names()
        for module in modules(f"store/{dialect}"):
            for name, passed in calls(module):
                assert name in required
                assert passed is None or required[name] <= passed, name

    def test_every_statement_is_run(self, dialect: str) -> None:
        others = tuple(f"store/{other}/" for other in DIALECTS if other != dialect)
        literals = {
            node.value
            for module in modules("store")
            if not module.path.startswith(others)
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }

        assert {name for name in statements(dialect) if name not in literals} <= self.concatenated(literals)

    @staticmethod
    def concatenated(literals: set[str]) -> set[str]:
        """Return the names that two literals form together, such as claim_lane + _types."""
        return {f"{stem}{end}" for stem in literals for end in literals if end.startswith("_") or stem.endswith("_")}

    def test_hot_statements_name_their_index(self, dialect: str) -> None:
        written = texts(dialect)
        for name in HOT[dialect]:
            assert INDEX_COMMENT.search(written[name]), name

    def test_named_indexes_exist_in_the_schema(self, dialect: str) -> None:
        named = {
            index
            for text in texts(dialect).values()
            for line in INDEX_COMMENT.findall(text)
            for index in re.findall(r"holdfast_\w+", line)
        }

        assert named
        assert {index for index in named if not re.search(rf"\b{index}\b", schema(dialect))} == set()

    def test_statements_take_the_time_from_the_database_clock(self, dialect: str) -> None:
        """S24: no statement receives the current time as a parameter or reads another clock than `clock()`."""
        foreign = re.compile(r"\b(now\(\)|current_timestamp|localtimestamp|sysdate|getdate|:now\b)", re.IGNORECASE)
        for name, text in texts(dialect).items():
            assert not foreign.search(COMMENT.sub("", text)), name

    def test_sql_writes_stored_codes_by_name(self, dialect: str) -> None:
        files = [
            file
            for folder in ("common", f"{dialect}/sql", f"{dialect}/migrations")
            for file in (PACKAGE / "store" / folder).glob("*.sql")
        ]

        assert files
        for file in files:
            for line in COMMENT.sub("", file.read_text()).splitlines():
                assert not BARE_CODE.search(line), f"{file.relative_to(PACKAGE)}: {line.strip()}"

    def test_names_of_codes_are_substituted(self, dialect: str) -> None:
        loaded = statements(dialect)
        texts = [loaded[name].text for name in loaded]

        assert not [text for text in (*texts, schema(dialect)) if re.search(r"\{[A-Z_]+\}", text)]

    def test_migrations_are_numbered_without_gaps(self, dialect: str) -> None:
        found = migrations(dialect)

        assert [step.version for step in found] == list(range(1, len(found) + 1))
        assert len(found) == len(list((PACKAGE / "store" / dialect / "migrations").iterdir()))

    def test_view_translates_status_codes_as_they_are_stored(self, dialect: str) -> None:
        """The view `holdfast_jobs`, meant for people, shows the name of each status code."""
        words = "'ready', 'running', 'succeeded', 'dead', 'cancelled', 'scheduled', 'retrying', 'blocked'"
        cases = dict(re.findall(r"WHEN (\d) THEN '(\w+)'", schema(dialect)))
        stored = [*words.replace("'", "").split(", "), "ready"]  # code 8: waiting for its concurrency key

        assert f"{words}, 'ready'" in schema(dialect) or [cases[str(code)] for code in range(9)] == stored


@pytest.mark.parametrize(
    "line",
    [
        "WHERE status = 1",
        "WHERE l.status::int >= 5",
        "WHERE status IN (5, 6)",
        "AND parked = 0",
        "OR m.was = 0",
        "CASE status WHEN 1 THEN 'running' END",
        "WHERE 1 = l.status",
        "slots & 2 = 0",
    ],
)
def test_a_bare_code_is_found(line: str) -> None:
    assert BARE_CODE.search(line)


@pytest.mark.parametrize(
    "line", ["WHERE status = {RUNNING}", "one = 1", "failures > 0", "status = :status", "attempts = attempts + 1"]
)
def test_a_named_code_or_a_plain_number_is_accepted(line: str) -> None:
    assert not BARE_CODE.search(line)


def test_all_dialects_have_the_same_migrations() -> None:
    named = {dialect: [(step.version, step.name) for step in migrations(dialect)] for dialect in DIALECTS}

    assert named["postgres"] == named["mysql"] == named["sqlite"]


def test_all_dialects_have_the_same_tables() -> None:
    """Tables that only one dialect needs are excepted."""
    own = {
        "postgres": {"holdfast_history_default", "holdfast_maintenance"},
        "mysql": {"holdfast_claims", "holdfast_deadlines"},
        "sqlite": {"holdfast_sequence", "holdfast_maintenance"},
    }
    made = re.compile(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)")
    tables = {dialect: set(made.findall(schema(dialect))) - own[dialect] for dialect in DIALECTS}

    assert tables["postgres"] == tables["mysql"] == tables["sqlite"]
    assert all(name.startswith("holdfast_") for name in tables["postgres"])


REMOVED_FUNCTIONS = re.compile(r"\b(?:MD5|SHA1?|(?:OLD_)?PASSWORD|ENCRYPT|DES_(?:EN|DE)CRYPT|ENCODE|DECODE)\(")
"""Functions that a supported version of MySQL lacks: 8.0 removed most of them, 9.6 the weak hashes."""


def test_no_statement_for_mysql_uses_a_function_that_a_version_lacks() -> None:
    """P86"""
    files = [
        *(PACKAGE / "store").rglob("*.sql"),
        *(PACKAGE / "store").rglob("*.py"),
        *(PACKAGE / "bench").rglob("*.py"),
    ]
    assert files
    assert [file.name for file in files if REMOVED_FUNCTIONS.search(file.read_text())] == []
