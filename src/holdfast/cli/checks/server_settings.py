"""Commands that change a setting of a database server, as fixes of `holdfast doctor`."""

READ_ONLY = "default_transaction_read_only"
"""Setting of PostgreSQL that makes new transactions read-only."""


def fix_setting(dialect: str, name: str, value: str, origin: tuple[str, ...]) -> str:
    """Return the command that changes a setting where it is set.

    `origin` is the source of the setting, the database and the user; it is empty on MySQL.
    """
    if dialect == "mysql":
        if name == "innodb_doublewrite":  # read only at startup
            return "echo 'innodb_doublewrite = ON' >> MY.CNF && systemctl restart mysql"
        return f'mysql -e "SET GLOBAL {name} = {value}"'
    source, database, user = origin
    # A session that is read-only by this setting could not change it.
    psql = "PGOPTIONS='-c default_transaction_read_only=off' psql" if name == READ_ONLY else "psql"
    scope = {
        "database": f'DATABASE \\"{database}\\"',
        "user": f'ROLE \\"{user}\\"',
        "database user": f'ROLE \\"{user}\\" IN DATABASE \\"{database}\\"',
    }.get(source)
    if scope is not None:
        return f'{psql} "$HOLDFAST_DATABASE_URL" -c "ALTER {scope} SET {name} = {value}"'
    if source == "command line":  # only a restart changes it
        return f"pg_ctl -D DATA_DIRECTORY restart -o '-c {name}={value}'"
    reload = f'{psql} "$HOLDFAST_DATABASE_URL" -c "SELECT pg_reload_conf()"'
    return f'{psql} "$HOLDFAST_DATABASE_URL" -c "ALTER SYSTEM SET {name} = {value}" && {reload}'
