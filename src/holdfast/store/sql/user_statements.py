"""Checks of callers' statements: refuse those that would end the transaction or outlive it."""

import re
from typing import NamedTuple

from holdfast.errors import Invalid

_COMMENT = r"--[^\n]*|/\*(?!M?!).*?\*/"
_FIRST = re.compile(r"[\s(;]*([A-Za-z]+)(?:\s+([A-Za-z@]+))?")

_ENDS = frozenset({"BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "XA"})
_PLAIN = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "WITH", "VALUES"})
"""First words of statements that do not change the state of the connection."""


class Dialect(NamedTuple):
    """Lexical syntax of a database, and statements that are not allowed in a session."""

    skipped: re.Pattern[str]
    """Comments and quoted text."""
    comment: re.Pattern[str]
    refused: frozenset[str]
    """First words of statements that would commit or change the state of the connection."""
    allowed: frozenset[tuple[str, str]] = frozenset()
    """First two words of exceptions."""
    why: str = "it would change the connection for its next user"


def _dialect(quotes: str, comment: str, refused: str, allowed: str = "", **more: str) -> Dialect:
    pairs = allowed.split()
    return Dialect(
        re.compile(f"{comment}|{quotes}", re.DOTALL),
        re.compile(comment, re.DOTALL),
        frozenset(refused.split()),
        frozenset(zip(pairs[::2], pairs[1::2], strict=True)),
        **more,
    )


POSTGRES = _dialect(
    r"'(?:[^']|'')*'|\"[^\"]*\"",
    _COMMENT,
    "SET RESET DISCARD LISTEN UNLISTEN PREPARE EXECUTE DEALLOCATE LOAD",
    "SET LOCAL SET CONSTRAINTS",
)
MYSQL = _dialect(
    r"'(?:[^'\\]|''|\\.)*'|\"(?:[^\"\\]|\"\"|\\.)*\"|`[^`]*`",
    _COMMENT + r"|#[^\n]*",
    "ALTER CREATE DROP RENAME TRUNCATE GRANT REVOKE LOCK UNLOCK ANALYZE CACHE CHECK FLUSH LOAD OPTIMIZE REPAIR RESET "
    "INSTALL UNINSTALL SET USE KILL SHUTDOWN CHANGE STOP PREPARE EXECUTE DEALLOCATE",
    "CREATE TEMPORARY DROP TEMPORARY SET @",
    why="this database would commit the earlier statements, or change the connection for its next user",
)
SQLITE = _dialect(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]", _COMMENT, "ATTACH DETACH PRAGMA VACUUM")


def check(sql: str, dialect: Dialect) -> bool:
    """Check a statement; return True if it leaves the state of the connection unchanged.

    This catches common mistakes. A statement that slips through is detected because the transaction has ended.

    Raises:
        Invalid: the text has several statements, or one that is not allowed in a transaction.
    """
    found = _FIRST.match(dialect.comment.sub(" ", sql))
    word = found[1].upper() if found else ""
    second = (found[2] or "").upper() if found else ""
    if word in _ENDS:
        raise Invalid(f"{word} is not allowed inside a transaction block: leave the block to end the transaction")
    if word in dialect.refused and (word, second) not in dialect.allowed:
        raise Invalid(f"{word} is not allowed in a transaction: {dialect.why}")
    if word != "CREATE" and re.search(r";\s*\S", dialect.skipped.sub(" x ", sql)):
        raise Invalid("the text has several statements: run one statement at a time")
    return word in _PLAIN
