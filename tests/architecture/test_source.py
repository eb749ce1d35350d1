"""Rules for the whole source, and the reason for each exception."""

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
        "TableMaintenance._drop_partitions": "a partition's name cannot be a parameter; it was read from the catalogue",
        "_create_partition": "a partition's name and bounds cannot be parameters; all are formatted from integers",
    },
    "store/postgres/pool.py": {"_begin": "names and values are constants of this module"},
    "store/mysql/driver.py": {"MysqlConnection.connect": "names and values are constants of this module"},
    "store/mysql/literal.py": {
        "table": "MySQL has no array parameters: only this module formats values as text, and it has its own tests",
        "_rows": "part of `table`",
    },
    "store/mysql/transitions.py": {
        "TransitionsTx._lock_ready": "joins named statements whose values come from `literal`"
    },
    "store/indexes.py": {
        "_standard": "definitions of indexes, taken from the migrations",
        "_mysql": "the same",
    },
    "cli/commands/migrate.py": {"_create_indexes": "the name of an index from the migrations"},
    "cli/checks/server_settings.py": {"fix_setting": "a command to print; it is not run"},
    "store/sqlite/batched_statements.py": {"_repeat": "repeats the row of placeholders of a named statement"},
    "store/mysql/store.py": {"_migrate": "the name of a lock is a constant of this module"},
}
"""Functions that build the text of a statement, and why that is safe (T22)."""

whole_package = pytest.mark.slow
"""Marks a test that walks the syntax trees of all modules; parsing them takes a second."""


def built_sql(module: Module) -> set[str]:
    """Return the functions that build a text which looks like SQL."""
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
    """Skip error messages, which may name SQL commands, and the benchmark, which uses constant table names."""
    return module.path.endswith("errors.py") or module.path.startswith("bench/")


@whole_package
def test_sql_is_built_only_in_the_listed_functions() -> None:
    """T22: statements are constant text in `.sql` files, and values are parameters."""
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
def test_built_sql_is_detected(text: str) -> None:
    assert built_sql(Module("x.py", text, ast.parse(text)))


FORBIDDEN_MODULES = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "yaml.load", "yaml.unsafe_load", "os.system", "os.popen"}


def executed_data(module: Module) -> set[str]:
    """Return the modules and calls by which this module could execute data."""
    found: set[str] = set()
    for node in ast.walk(module.tree):
        match node:
            case ast.Import():
                found |= FORBIDDEN_MODULES & {alias.name.split(".")[0] for alias in node.names}
            case ast.ImportFrom():
                found |= FORBIDDEN_MODULES & {(node.module or "").split(".")[0]}
            case ast.Call():
                found |= FORBIDDEN_CALLS & {dotted(node.func)}
                found |= {f"{keyword.arg}=" for keyword in node.keywords if keyword.arg == "shell"}
    return found


@whole_package
def test_no_module_can_execute_data() -> None:
    """T23, T24: no deserialisation of code, no evaluation, no shell."""
    assert {module.path: found for module in modules() if (found := executed_data(module))} == {}


@pytest.mark.parametrize(
    "text",
    ["import pickle", "from dill import loads", "eval(text)", "yaml.load(text)", "subprocess.run(command, shell=True)"],
)
def test_executed_data_is_detected(text: str) -> None:
    assert executed_data(Module("x.py", text, ast.parse(text)))


WALL_CLOCK = {
    "time.time", "time.time_ns", "time.localtime", "time.gmtime", "datetime.now", "datetime.utcnow", "datetime.today",
    "date.today", "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.date.today",
}  # fmt: skip

MAY_READ_THE_WALL_CLOCK = {
    "model/ids.py": "a UUIDv7 contains a time, which orders ids and decides nothing",
    "api/headers.py": "the Date header of a response",
    "telemetry/logs.py": "the time of a log line",
    "worker/context/attempt_logs.py": "the time of a line in an attempt's log",
    "cli/checks/database.py": "reports how far the machine's clock is from the database's",
    "cli/render.py": "shows how long ago something happened",
    "cli/param_types.py": "resolves 'two hours ago' in a command's argument",
    "builtin/webhooks/handler.py": "the signed timestamp of a delivery, and the reference for a date in Retry-After",
    "compose.py": "the duration of an attempt in a remote worker's log",
    "engine/clock.py": "measures the offset to the database's clock, so that ids contain the database's time",
}


@whole_package
def test_only_the_listed_modules_read_the_wall_clock() -> None:
    """S24: the database's clock decides due times and leases; a node measures durations with its monotonic clock."""
    readers = {
        module.path
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and dotted(node) in WALL_CLOCK
    }

    assert readers == set(MAY_READ_THE_WALL_CLOCK)


MAY_START_TASKS = {
    "tasks.py": "keeps a reference to each task and logs its failure",
    "api/server/connection.py": "one task per request, which its connection holds; the helper would cost each request",
    "engine/batcher.py": "one task per flush, which its batcher holds; the helper would cost each submission",
}
"""Modules that start tasks without the helper. The last two are on the hot path and handle every failure themselves."""


def bare_tasks(module: Module) -> list[int]:
    """Return the lines that start an asyncio task outside a task group."""
    groups = {
        item.optional_vars.id
        for node in ast.walk(module.tree)
        if isinstance(node, ast.AsyncWith)
        for item in node.items
        if isinstance(item.context_expr, ast.Call)
        and dotted(item.context_expr.func) == "asyncio.TaskGroup"
        and isinstance(item.optional_vars, ast.Name)
    }
    return [
        node.lineno
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute)
        and node.attr in {"create_task", "ensure_future"}
        and dotted(node.value) not in groups
    ]


@whole_package
def test_tasks_start_in_a_task_group_or_through_holdfast_tasks() -> None:
    """A bare task can be garbage collected while it runs, and its failure shows only then."""
    starters = {module.path: lines for module in modules() if (lines := bare_tasks(module))}
    assert starters.keys() == MAY_START_TASKS.keys(), starters


@pytest.mark.parametrize(
    "text, lines",
    [
        ("asyncio.create_task(work())", [1]),
        ("loop = asyncio.get_running_loop()\nloop.create_task(work())", [2]),
        ("waiting = asyncio.ensure_future(read())", [1]),
        ("start = self._loop.create_task", [1]),
        ("async def f():\n    async with asyncio.TaskGroup() as group:\n        group.create_task(work())", []),
        ("tasks.start(work(), name='x')", []),
    ],
)
def test_bare_task_is_detected(text: str, lines: list[int]) -> None:
    assert bare_tasks(Module("x.py", text, ast.parse(text))) == lines


def docstring_lines(tree: ast.Module) -> int:
    """Return the number of lines that the docstrings of a module take, those of attributes included."""
    return sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )


@whole_package
def test_modules_have_at_most_350_lines_besides_docstrings() -> None:
    lines = {module.path: module.text.count("\n") - docstring_lines(module.tree) for module in modules()}
    assert {path: count for path, count in lines.items() if count > 350} == {}
    assert max(lines.values()) > 250, "the lines are not counted"


@whole_package
def test_modules_have_a_docstring() -> None:
    assert [module.path for module in modules() if not ast.get_docstring(module.tree)] == []


def test_public_names_have_docstrings() -> None:
    public = getattr(holdfast, "__all__", [name for name in vars(holdfast) if not name.startswith("_")])
    documented = [getattr(holdfast, name) for name in public]

    assert holdfast.__doc__
    assert all(getattr(thing, "__doc__", None) for thing in documented if callable(thing))


HEAVY = (
    "asyncpg", "asyncmy", "apsw", "starlette", "uvicorn", "aiohttp", "click", "rich", "redis", "grpc", "jwt",
    "prometheus_client",
)  # fmt: skip


def test_importing_holdfast_has_no_side_effects() -> None:
    """Importing the package loads no driver or server, starts no thread and prints nothing."""
    program = (
        "import sys, threading, logging\n"
        "import holdfast\n"
        f"print(sorted(set(sys.modules) & set({HEAVY!r})), threading.active_count(), logging.getLogger().handlers)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert (run.stdout, run.stderr) == ("[] 1 []\n", "")


@pytest.mark.slow
def test_worker_process_does_not_import_unneeded_clients() -> None:
    """Worker processes start often: one per core, after each crash, and for each isolated job."""
    clients = ("aiohttp", "yarl", "aiosmtplib", "asyncpg", "asyncmy", "redis", "uvicorn", "click")
    program = f"import sys, holdfast.cli.worker_process\nprint(sorted(set(sys.modules) & set({clients!r})))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert (run.stdout, run.stderr) == ("[]\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["serve", "work"])
def test_node_does_not_import_optional_libraries(command: str) -> None:
    """Optional libraries are imported on first use, because every deploy restarts all nodes."""
    heavy = ("jwt", "cryptography", "aiohttp", "yarl", "asyncpg", "asyncmy", "redis", "rich", "holdfast.sdk.models")
    imports = f"import sys, holdfast.cli.commands.{command}, holdfast.api.app"
    program = f"{imports}\nprint(sorted(set(sys.modules) & set({heavy!r})))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert (run.stdout, run.stderr) == ("[]\n", "")


def test_model_and_policy_import_nothing_heavy() -> None:
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
