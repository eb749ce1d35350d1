"""Check of `holdfast doctor` that the database accepts writes.

It may be a standby, or read-only by a setting.
"""

from holdfast.cli.checks.findings import Finding
from holdfast.cli.checks.server_settings import READ_ONLY, fix_setting
from holdfast.errors import Contention, Misconfigured, Unavailable
from holdfast.store.console import Console
from holdfast.store.port.store import Store

_EFFECT = "jobs can be neither accepted nor run"


async def check_writes(store: Store, console: Console) -> Finding:
    """Try a write that changes nothing, and name the cause if the database refuses it."""
    try:
        await store.run(lambda tx: tx.prune_limits(0))
    except Contention:
        pass  # other transactions write
    except (Unavailable, Misconfigured) as error:
        causes = {"postgres": _postgres_cause, "mysql": _mysql_cause}
        cause = await causes[console.dialect](console) if console.dialect in causes else None
        return cause or Finding("writes", "wrong", str(error))
    return Finding("writes", "ok", "accepted")


async def _postgres_cause(console: Console) -> Finding | None:
    ((in_recovery, setting, *origin),) = await console.rows(
        "SELECT pg_is_in_recovery(), setting, source, current_database(), current_user "
        "FROM pg_settings WHERE name = 'default_transaction_read_only'"
    )
    if in_recovery:
        return _standby("postgresql://USER:PASSWORD@PRIMARY:5432/DATABASE")
    if setting == "on":
        fix = fix_setting("postgres", READ_ONLY, "off", tuple(map(str, origin)))
        return Finding("writes", "wrong", f"{READ_ONLY}=on: {_EFFECT}", fix)
    return None


async def _mysql_cause(console: Console) -> Finding | None:
    rows = await console.rows(
        "SHOW GLOBAL VARIABLES WHERE variable_name IN ('read_only', 'tx_read_only', 'transaction_read_only')"
    )
    enabled = [str(name) for name, value in rows if str(value).lower() == "on"]
    if "read_only" in enabled:
        return _standby("mysql://USER:PASSWORD@PRIMARY:3306/DATABASE")
    if enabled:
        return Finding("writes", "wrong", f"{enabled[0]}=on: {_EFFECT}", fix_setting("mysql", enabled[0], "OFF", ()))
    return None


def _standby(url: str) -> Finding:
    text = f"the server is read-only, as a standby is: {_EFFECT}"
    return Finding("writes", "wrong", text, f"export HOLDFAST_DATABASE_URL={url}")
