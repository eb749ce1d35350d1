"""Schema steps: numbered SQL files for each dialect, applied in order, never changed once released."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

from holdfast.errors import SchemaMismatch

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)

FIX_OLD = "run 'holdfast migrate' (it is safe while nodes run)"
FIX_NEW = "upgrade holdfast on this node, or point it at another database"


class Migration(NamedTuple):
    """One schema step."""

    version: int
    name: str
    sql: str
    checksum: str

    def statements(self) -> list[str]:
        """Its statements one by one, for databases that take one at a time."""
        body = _COMMENT.sub("", self.sql)
        return [statement for piece in body.split(";\n") if (statement := piece.strip().rstrip(";"))]


class AppliedMigration(NamedTuple):
    """A step the database says it has."""

    version: int
    name: str
    checksum: str


def migrations(dialect: str) -> list[Migration]:
    """All steps of a dialect, in order."""
    found = []
    for file in (files("holdfast.store") / dialect / "migrations").iterdir():
        if match := _FILE.fullmatch(file.name):
            text = file.read_text()
            found.append(Migration(int(match[1]), match[2], text, hashlib.sha256(text.encode()).hexdigest()[:32]))
    return sorted(found)


def pending(known: Sequence[Migration], applied: Sequence[AppliedMigration]) -> list[Migration]:
    """The steps still to apply; refuses a database that is newer, or whose steps are not ours."""
    by_version: Mapping[int, Migration] = {step.version: step for step in known}
    for done in applied:
        step = by_version.get(done.version)
        if step is None:
            newest = max(by_version, default=0)
            raise SchemaMismatch(
                f"the database's schema is version {max(a.version for a in applied)}, "
                f"this holdfast works with {newest}: {FIX_NEW}"
            )
        if step.checksum != done.checksum:
            raise SchemaMismatch(
                f"schema step {done.version:04d}_{done.name} in the database differs from the one in this holdfast: "
                "the tables were made by another build; use the build that made them, or another database"
            )
    had = {done.version for done in applied}
    return [step for step in known if step.version not in had]


def require_current(known: Sequence[Migration], applied: Sequence[AppliedMigration]) -> None:
    """Raise `SchemaMismatch` unless nothing is pending."""
    if missing := pending(known, applied):
        at = max((done.version for done in applied), default=0)
        raise SchemaMismatch(
            f"the database's schema is version {at}, this holdfast works with {missing[-1].version}: {FIX_OLD}"
        )
