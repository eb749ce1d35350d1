"""SQL statements are read from their files and adapted to a driver."""

import pytest

from holdfast.store.statements import Statements, _adapt


def dollars(_: str, position: int) -> str:
    return f"${position}"


def test_a_parameter_becomes_the_placeholder_of_the_driver() -> None:
    adapted = _adapt("x", "SELECT :a, :b, :a", dollars, repeat_positions=False)

    assert (adapted.text, adapted.parameters) == ("SELECT $1, $2, $1", ("a", "b"))


def test_a_driver_without_positions_gets_a_repeated_parameter_repeatedly() -> None:
    adapted = _adapt("x", "SELECT :a, :b, :a", lambda *_: "?", repeat_positions=True)

    assert (adapted.text, adapted.parameters) == ("SELECT ?, ?, ?", ("a", "b", "a"))


@pytest.mark.parametrize("text", ["a::bigint", "'12:30:00'", "x[1:2]", "status = 0"])
def test_a_colon_that_is_not_a_parameter_is_unchanged(text: str) -> None:
    assert _adapt("x", text, dollars, repeat_positions=False) == ("x", text, ())


def test_a_cast_after_a_parameter_is_not_a_parameter() -> None:
    assert _adapt("x", ":ids::uuid[]", dollars, repeat_positions=False) == ("x", "$1::uuid[]", ("ids",))


@pytest.mark.parametrize("dialect", ["postgres", "mysql", "sqlite"])
def test_a_manual_clock_replaces_the_clock_of_the_database(dialect: str) -> None:
    manual = Statements(dialect, placeholder=dollars, clock="(SELECT at FROM test_clock)")

    assert "test_clock" in manual["renew"].text
    assert not any("clock()" in manual[name].text for name in manual)
