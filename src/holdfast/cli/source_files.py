"""Python files of a project, and modules that declare jobs but are not imported."""

import ast
import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType

MAX_FILES = 5_000
"""Maximum number of Python files that are read; a larger folder is hardly one project."""

_MAX_FILE_BYTES = 1 << 20
_FOREIGN_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages"})


def python_files(folder: Path) -> Iterator[Path]:
    """Yield the Python files below a folder, without hidden folders and virtual environments."""
    return islice(_walk(folder), MAX_FILES)


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        if "pyvenv.cfg" in names:
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if name not in _FOREIGN_FOLDERS and not name.startswith("."))
        yield from (Path(parent, name) for name in sorted(names) if name.endswith(".py"))


def unimported_modules(module: ModuleType, attribute: str) -> list[str]:
    """Return the names of modules that declare jobs of an application and are not imported.

    They are looked for in the folder of the application's module, and found by their text: they are not executed.

    Args:
        module: Module that contains the application.
        attribute: Name of the application in it.
    """
    if module.__file__ is None:
        return []
    path = Path(module.__file__).resolve()
    depth = module.__name__.count(".") + (path.name == "__init__.py")
    root = path.parents[min(depth, len(path.parents) - 1)]
    imported = {str(Path(file).resolve()) for file in map(_file_of, list(sys.modules.values())) if file}
    return [
        _module_name(file, root)
        for file in python_files(path.parent)
        if str(file) not in imported and _declares_jobs(file, attribute)
    ]


def _file_of(module: object) -> str | None:
    file = getattr(module, "__file__", None)
    return file if isinstance(file, str) else None


def _module_name(file: Path, root: Path) -> str:
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _declares_jobs(file: Path, attribute: str) -> bool:
    """Return True if a file decorates a top-level function as a job of the application."""
    try:
        if file.stat().st_size > _MAX_FILE_BYTES or b".job" not in (text := file.read_bytes()):
            return False
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        return False
    names = {
        alias.asname or alias.name
        for statement in tree.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
        if alias.name == attribute
    }
    return any(
        _is_job_decorator(decorator, attribute, names)
        for statement in tree.body
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
        for decorator in statement.decorator_list
    )


def _is_job_decorator(decorator: ast.expr, attribute: str, names: set[str]) -> bool:
    """Recognise `@app.job`, `@app.job(…)` and `@module.app.job` of an imported application."""
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    if not isinstance(function, ast.Attribute) or function.attr != "job":
        return False
    match function.value:
        case ast.Name(name):
            return name in names
        case ast.Attribute(attr=name):
            return name == attribute
        case _:
            return False
