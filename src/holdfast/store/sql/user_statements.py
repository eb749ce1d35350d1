"""Statements that callers bring: refused where they would end the transaction they run in, or outlast it."""

import re
from typing import NamedTuple

from holdfast.errors import Invalid

_COMMENT = r"--[^\n]*|/\*(?!M?!).*?\*/"
_FIRST = re.compile(r"[\s(;]*([A-Za-z]+)(?:\s+([A-Za-z@]+))?")

_ENDS = frozenset({"BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "XA"})
_PLAIN = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "WITH", "VALUES"})
"""What leaves nothing behind on its connection but the rows it wrote."""


class Dialect(NamedTuple):
    """How a database reads its statements, and which of them it would commit by itself."""

    skipped: re.Pattern[str]
    """Comments and quoted text."""
    comment: re.Pattern[str]
    refused: frozenset[str]
    """First words of what would commit, or change the connection for others."""
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
    why="this database would commit what came before it, or change the connection for its next user",
)
SQLITE = _dialect(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]", _COMMENT, "ATTACH DETACH PRAGMA VACUUM")


def check(sql: str, dialect: Dialect) -> bool:
    """Refuse what a transaction of ours cannot hold; whether the connection is as good as new after it.

    It spares mistakes; what gets past it is noticed by the transaction having ended.
    """
    found = _FIRST.match(dialect.comment.sub(" ", sql))
    word = found[1].upper() if found else ""
    second = (found[2] or "").upper() if found else ""
    if word in _ENDS:
        raise Invalid(f"{word} is not allowed in a transaction that commits with its block: leave the block to end it")
    if word in dialect.refused and (word, second) not in dialect.allowed:
        raise Invalid(f"{word} is not allowed in a transaction: {dialect.why}")
    if word != "CREATE" and re.search(r";\s*\S", dialect.skipped.sub(" x ", sql)):
        raise Invalid("give one statement at a time: this text has several")
    return word in _PLAIN
