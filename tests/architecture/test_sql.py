"""Statements and schema steps of the three dialects agree, and say what they ride on."""

import ast
import re
from typing import NamedTuple

import pytest

from holdfast.store.migrate import steps
from holdfast.store.statements import Statements
from tests.architecture.source import DIALECTS, PACKAGE, Module, dotted, modules

CHOSEN_WHILE_RUNNING = {
    f"{look}_{way}"
    for look in ("window", "find")
    for way in ("live", "dead", "dead_of", "dead_alike", "history", "history_of")
}
"""Statements that the shared code names in a variable."""

REPLACED = {"mysql": {"held_by", "orphans", "overdue"}, "postgres": {"queue_backlog"}}
"""Statements of the shared code whose method a dialect writes anew, with statements of its own."""

HOT = {
    "postgres": {"claim", "finish", "requeue", "expired", "promote", "lanes", "renew", "held_by", "get", "overdue"},
    "mysql": {
        "lock_deadlines",
        "claim_lane",
        "lock_live",
        "expired",
        "lock_due",
        "lanes",
        "renew",
        "claims_of",
        "lock_holding",
        "get",
    },
    "sqlite": {
        "claim",
        "finish_history",
        "leave",
        "requeue",
        "expired",
        "due",
        "lanes",
        "renew",
        "held_by",
        "get",
        "overdue",
    },
}
"""What runs all the time, or over all jobs: each rides an index and says which."""


class Call(NamedTuple):
    """A named statement is run."""

    name: str
    given: frozenset[str] | None
    """The parameters it is given; None where they are put together elsewhere."""


def statements(dialect: str) -> Statements:
    return Statements(dialect, placeholder=lambda name, _: f":{name}", clock="clock()")


def calls(module: Module) -> list[Call]:
    """The statements that a module runs by name."""
    found = []
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call) or dotted(node.func).rsplit(".", 1)[-1] not in {"rows", "count"}:
            continue
        if node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
            names = [keyword.arg for keyword in node.keywords]
            known = None if None in names else frozenset(name for name in names if name)
            found.append(Call(node.args[0].value, known))
    return found


def shared_calls() -> list[Call]:
    """The statements that the code common to all dialects runs."""
    families = ("tx", "fleet", "steps", "find", "access", "admission", "breakers")
    shared = {f"store/sql_{family}.py" for family in families}
    return [call for module in modules("store") if module.path in shared for call in calls(module)]


def texts(dialect: str) -> dict[str, str]:
    """Each statement as it stands in its file, comments and all."""
    found: dict[str, str] = {}
    for folder in ("common", f"{dialect}/sql"):
        for file in sorted((PACKAGE / "store" / folder).glob("*.sql")):
            pieces = re.split(r"^-- name: *(\w+) *$", file.read_text(), flags=re.MULTILINE)
            found |= dict(zip(pieces[1::2], pieces[2::2], strict=True))
    return found


def schema(dialect: str) -> str:
    return "\n".join(step.sql for step in steps(dialect))


@pytest.mark.parametrize("dialect", DIALECTS)
class TestADialect:
    def test_has_every_statement_that_the_shared_code_runs(self, dialect: str) -> None:
        wanted = {call.name for call in shared_calls()} | CHOSEN_WHILE_RUNNING

        assert wanted - set(statements(dialect)) == REPLACED.get(dialect, set())

    def test_asks_for_no_parameter_that_the_shared_code_does_not_give(self, dialect: str) -> None:
        asked = statements(dialect).names()
        for name, given in shared_calls():
            if given is not None and name in asked:
                assert asked[name] <= given, name

    def test_runs_only_statements_it_has_with_what_they_ask_for(self, dialect: str) -> None:
        asked = statements(dialect).names()
        for module in modules(f"store/{dialect}"):
            for name, given in calls(module):
                assert name in asked
                assert given is None or asked[name] <= given, name

    def test_has_no_statement_that_nobody_runs(self, dialect: str) -> None:
        spelt = {
            node.value
            for path in ("store", f"store/{dialect}")
            for module in modules(path)
            if module.path.count("/") == 1 or module.path.startswith(f"store/{dialect}/")
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }

        assert {name for name in statements(dialect) if name not in spelt} <= self.made_up(spelt)

    @staticmethod
    def made_up(spelt: set[str]) -> set[str]:
        """Names put together from parts that are spelt, such as claim_lane + _types."""
        return {f"{stem}{end}" for stem in spelt for end in spelt if end.startswith("_") or stem.endswith("_")}

    def test_says_for_its_hot_statements_which_index_they_ride(self, dialect: str) -> None:
        written = texts(dialect)
        for name in HOT[dialect]:
            assert re.search(r"^-- Rides .*", written[name], re.MULTILINE), name

    def test_rides_only_indexes_that_its_schema_has(self, dialect: str) -> None:
        named = {
            index
            for text in texts(dialect).values()
            for line in re.findall(r"^-- Rides (.*)", text, re.MULTILINE)
            for index in re.findall(r"holdfast_\w+", line)
        }

        assert {index for index in named if not re.search(rf"\b{index}\b", schema(dialect))} == set()

    def test_takes_the_time_from_the_database_alone(self, dialect: str) -> None:
        """S24: no statement of a use case is handed the present time, and none asks another clock than `clock()`."""
        foreign = re.compile(r"\b(now\(\)|current_timestamp|localtimestamp|sysdate|getdate|:now\b)", re.IGNORECASE)
        for name, text in texts(dialect).items():
            assert not foreign.search(re.sub(r"^--.*$", "", text, flags=re.MULTILINE)), name

    def test_numbers_its_schema_steps_without_gaps(self, dialect: str) -> None:
        found = steps(dialect)

        assert [step.version for step in found] == list(range(1, len(found) + 1))
        assert len(found) == len(list((PACKAGE / "store" / dialect / "migrations").iterdir()))

    def test_spells_the_codes_of_the_states_as_they_are_stored(self, dialect: str) -> None:
        """The view for people turns codes into words."""
        words = "'ready', 'running', 'succeeded', 'dead', 'cancelled', 'scheduled', 'retrying', 'blocked'"
        cases = dict(re.findall(r"WHEN (\d) THEN '(\w+)'", schema(dialect)))
        stored = [*words.replace("'", "").split(", "), "ready"]  # the last waits for its concurrency key

        assert f"{words}, 'ready'" in schema(dialect) or [cases[str(code)] for code in range(9)] == stored


def test_all_dialects_have_the_same_schema_steps() -> None:
    named = {dialect: [(step.version, step.name) for step in steps(dialect)] for dialect in DIALECTS}

    assert named["postgres"] == named["mysql"] == named["sqlite"]


def test_all_dialects_have_the_same_tables() -> None:
    """But for what one of them alone needs."""
    own = {
        "postgres": {"holdfast_history_default", "holdfast_upkeep"},
        "mysql": {"holdfast_claims", "holdfast_deadlines"},
        "sqlite": {"holdfast_counter", "holdfast_upkeep"},
    }
    made = re.compile(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)")
    tables = {dialect: set(made.findall(schema(dialect))) - own[dialect] for dialect in DIALECTS}

    assert tables["postgres"] == tables["mysql"] == tables["sqlite"]
    assert all(name.startswith("holdfast_") for name in tables["postgres"])
