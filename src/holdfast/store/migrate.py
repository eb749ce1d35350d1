"""Schema migrations: numbered SQL files per dialect, never changed once released."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

from holdfast.errors import SchemaMismatch
from holdfast.store.codes import substitute_codes

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)

FIX_OLD = "run 'holdfast migrate' (it is safe while nodes run)"
FIX_NEW = "upgrade holdfast on this node, or point it at another database"


class Migration(NamedTuple):
    """Schema migration.

    Names of stored codes are already substituted in `sql`; the checksum covers the result.
    """

    version: int
    name: str
    sql: str
    checksum: str

    def statements(self) -> list[str]:
        """Return the statements one by one, for databases that run one at a time."""
        body = _COMMENT.sub("", self.sql)
        return [statement for piece in body.split(";\n") if (statement := piece.strip().rstrip(";"))]


class AppliedMigration(NamedTuple):
    """Migration that the database records as applied."""

    version: int
    name: str
    checksum: str


def migrations(dialect: str) -> list[Migration]:
    """Return all migrations of a dialect, in order."""
    found = []
    for file in (files("holdfast.store") / dialect / "migrations").iterdir():
        if match := _FILE.fullmatch(file.name):
            sql = substitute_codes(file.read_text())
            found.append(Migration(int(match[1]), match[2], sql, hashlib.sha256(sql.encode()).hexdigest()[:32]))
    return sorted(found)


def pending(known: Sequence[Migration], applied: Sequence[AppliedMigration]) -> list[Migration]:
    """Return the migrations still to apply.

    Raises:
        SchemaMismatch: the database is newer than this version, or was migrated by a different build.
    """
    by_version: Mapping[int, Migration] = {migration.version: migration for migration in known}
    for done in applied:
        migration = by_version.get(done.version)
        if migration is None:
            newest = max(by_version, default=0)
            raise SchemaMismatch(
                f"the database's schema is version {max(a.version for a in applied)}, "
                f"this holdfast works with {newest}: {FIX_NEW}"
            )
        if migration.checksum != done.checksum:
            raise SchemaMismatch(
                f"migration {done.version:04d}_{done.name} in the database differs from the one in this holdfast: "
                "another build created the tables; use that build, or another database"
            )
    versions = {done.version for done in applied}
    return [migration for migration in known if migration.version not in versions]


def require_current(known: Sequence[Migration], applied: Sequence[AppliedMigration]) -> None:
    """Raise `SchemaMismatch` if a migration is pending."""
    if missing := pending(known, applied):
        at = max((done.version for done in applied), default=0)
        raise SchemaMismatch(
            f"the database's schema is version {at}, this holdfast works with {missing[-1].version}: {FIX_OLD}"
        )
