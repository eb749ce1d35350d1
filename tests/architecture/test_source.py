"""Rules of the source as a whole: what it never does, and where the few exceptions are."""

import ast
import re
import subprocess
import sys
from collections import defaultdict

import pytest

import holdfast
from tests.architecture.source import Module, dotted, modules, scopes

SQL = re.compile(
    r"\b(SELECT|INSERT INTO|REPLACE INTO|UPDATE \w|DELETE FROM|CREATE|DROP|ALTER|TRUNCATE|VACUUM|SET (LOCAL|SESSION)|"
    r"UNION ALL|PRAGMA|VALUES)\b"
)

BUILT_SQL = {
    "store/postgres/table_maintenance.py": {
        "Upkeep._drop_days": "a partition's name cannot be a parameter; it was read from the catalogue and matched",
        "_make_day": "nor can a partition's name and bounds in its definition; all are made from whole numbers",
    },
    "store/postgres/pool.py": {"_begin": "names and values are constants of this module"},
    "store/mysql/driver.py": {"Link.connect": "names and values are constants of this module"},
    "store/mysql/literal.py": {
        "table": "MySQL takes no arrays: values become text here, and only here; tested apart",
        "_rows": "a part of it",
    },
    "store/mysql/transitions.py": {"MovesTx._visits": "joins named statements whose values `literal` has written"},
    "store/indexes.py": {
        "_standard": "definitions of indexes, taken from the schema's own steps",
        "_mysql": "the same",
    },
    "cli/commands/migrate.py": {"_make_indexes": "the name of one of them"},
    "cli/checks/database.py": {"_mend": "a command to print; it is not run"},
    "store/sqlite/batched_statements.py": {"_repeat": "repeats the row of placeholders of a named statement"},
    "store/mysql/store.py": {"_migrate": "the name of a lock is a constant of this module"},
}
"""Where a statement's text is put together in Python, and why that is safe (T22)."""


every_module = pytest.mark.parametrize("module", modules(), ids=lambda module: module.path)


def built_sql(module: Module) -> set[str]:
    """Functions that put together a text which looks like SQL."""
    return {inside or "(module)" for inside, node in scopes(module.tree) if _builds_text(node) and _has_sql(node)}


def _builds_text(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr():
            return any(isinstance(part, ast.FormattedValue) for part in node.values)
        case ast.BinOp(op=ast.Mod(), left=ast.Constant(value=str())):
            return True
        case ast.BinOp(op=ast.Add()):
            return any(not isinstance(side, ast.Constant) for side in (node.left, node.right))
        case ast.Call(func=ast.Attribute(attr="format" | "join")):
            return True
    return False


def _has_sql(node: ast.AST) -> bool:
    return any(
        isinstance(part, ast.Constant) and isinstance(part.value, str) and SQL.search(part.value)
        for part in ast.walk(node)
    )


def _is_exempt(module: Module) -> bool:
    """Texts for people name commands too; the benchmark fills and empties tables of its own, by names in its code."""
    return module.path.endswith("errors.py") or module.path.startswith("bench/")


def test_sql_is_put_together_only_where_it_must_be() -> None:
    """T22: statements are constants in `.sql` files; parameters travel beside them."""
    found: dict[str, set[str]] = defaultdict(set)
    for module in modules():
        if not _is_exempt(module) and (functions := built_sql(module)):
            found[module.path] = functions

    assert found == {path: set(functions) for path, functions in BUILT_SQL.items()}


@pytest.mark.parametrize(
    "text",
    [
        'f"SELECT {x}"',
        '"DELETE FROM t WHERE id = %s" % x',
        '"DROP TABLE {}".format(x)',
        '"UPDATE t SET " + x',
        '" UNION ALL ".join(parts)',
    ],
)
def test_the_rule_on_sql_sees_what_it_must(text: str) -> None:
    assert built_sql(Module("x.py", text, ast.parse(text)))


FORBIDDEN_MODULES = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "yaml.load", "yaml.unsafe_load", "os.system", "os.popen"}


@every_module
def test_nothing_is_read_that_could_run(module: Module) -> None:
    """T23, T24: JSON only, no code from data, no shell."""
    for node in ast.walk(module.tree):
        match node:
            case ast.Import():
                assert not FORBIDDEN_MODULES & {alias.name.split(".")[0] for alias in node.names}
            case ast.ImportFrom():
                assert (node.module or "").split(".")[0] not in FORBIDDEN_MODULES
            case ast.Call():
                assert dotted(node.func) not in FORBIDDEN_CALLS
                assert not any(keyword.arg == "shell" for keyword in node.keywords)


WALL_CLOCK = {
    "time.time", "time.time_ns", "time.localtime", "time.gmtime", "datetime.now", "datetime.utcnow", "datetime.today",
    "date.today", "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.date.today",
}  # fmt: skip

MAY_LOOK_AT_THE_CLOCK = {
    "model/ids.py": "a UUIDv7 carries a time; it orders, it decides nothing",
    "api/headers.py": "when an answer was given, as HTTP wants it to say",
    "telemetry/logs.py": "when a log line was written, for people",
    "worker/context/attempt_logs.py": "the same, for the lines kept with an attempt",
    "cli/checks/database.py": "how far this machine's clock is from the database's, to say so",
    "cli/render.py": "how long ago something was, for people",
    "cli/param_types.py": "what a person at a terminal means by 'two hours ago'",
    "builtin/webhooks/handler.py": "the timestamp that receivers check, and what a date in Retry-After is compared with",
    "engine/engine.py": "how far this node's clock is from the database's, so that ids carry the database's time",
}


def test_no_node_s_clock_decides_anything() -> None:
    """S24: due times, leases and ticks are the database's; a node measures spans by its monotonic clock."""
    looks = {
        module.path
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and dotted(node) in WALL_CLOCK
    }

    assert looks == set(MAY_LOOK_AT_THE_CLOCK)


@every_module
def test_a_module_fits_in_one_head(module: Module) -> None:
    assert module.text.count("\n") <= 350


@every_module
def test_a_module_says_what_it_is_for(module: Module) -> None:
    assert ast.get_docstring(module.tree)


def test_public_names_say_what_they_promise() -> None:
    public = getattr(holdfast, "__all__", [name for name in vars(holdfast) if not name.startswith("_")])
    documented = [getattr(holdfast, name) for name in public]

    assert holdfast.__doc__
    assert all(getattr(thing, "__doc__", None) for thing in documented if callable(thing))


HEAVY = (
    "asyncpg", "asyncmy", "apsw", "starlette", "uvicorn", "aiohttp", "click", "rich", "redis", "grpc", "jwt",
    "prometheus_client",
)  # fmt: skip


def test_import_is_quiet_and_brings_nothing_heavy() -> None:
    """Whoever imports holdfast gets no driver, no server, no thread, no word."""
    program = (
        "import sys, threading, logging\n"
        "import holdfast\n"
        f"print(sorted(set(sys.modules) & set({HEAVY!r})), threading.active_count(), logging.getLogger().handlers)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert (run.stdout, run.stderr) == ("[] 1 []\n", "")


def test_a_worker_process_brings_no_client_that_it_may_never_need() -> None:
    """One is started for each core, again after each crash, and for each job that runs alone."""
    clients = ("aiohttp", "yarl", "aiosmtplib", "asyncpg", "asyncmy", "redis", "uvicorn", "click")
    program = f"import sys, holdfast.cli.child\nprint(sorted(set(sys.modules) & set({clients!r})))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert (run.stdout, run.stderr) == ("[]\n", "")


@pytest.mark.parametrize("command", ["serve", "work"])
def test_a_node_brings_nothing_that_it_may_never_need(command: str) -> None:
    """Nodes are started again whenever they are deployed: what only some need is loaded by those."""
    heavy = ("jwt", "cryptography", "aiohttp", "yarl", "asyncpg", "asyncmy", "redis", "rich", "holdfast.sdk.models")
    program = f"import sys, holdfast.cli.{command}, holdfast.api.app\nprint(sorted(set(sys.modules) & set({heavy!r})))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert (run.stdout, run.stderr) == ("[]\n", "")


def test_the_pure_parts_bring_nothing_heavy() -> None:
    pure = [
        f"holdfast.{module.path[:-3].replace('/', '.')}"
        for module in modules()
        if module.path.startswith(("model/", "policy/"))
    ]
    program = (
        f"import sys, importlib\nfor name in {pure!r}: importlib.import_module(name)\n"
        f"print(sorted(set(sys.modules) & set({(*HEAVY, 'asyncio')!r})))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert (run.stdout, run.stderr) == ("[]\n", "")
