"""Import an application by its name, and parse the slots of its queues."""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from holdfast.app.holdfast import Holdfast
from holdfast.cli.source_files import unimported_modules
from holdfast.errors import Misconfigured
from holdfast.worker.handlers.registry import Registry

DEFAULT_SLOTS = 10
MAX_SLOTS = 1_000


def application(name: str, include: Sequence[str] = ()) -> Holdfast:
    """Import an application; for an empty name, return one with only the built-in job types."""
    if name:
        return load_app(name, include)
    if include:
        raise Misconfigured(f"--include {include[0]} needs an application: name it, such as holdfast work myapp:app")
    return Holdfast()


def load_app(name: str, include: Sequence[str] = ()) -> Holdfast:
    """Import `module:attribute`, with the current directory on the import path.

    Args:
        name: Module and attribute of the application.
        include: Further modules to import, which declare jobs of the application.

    Raises:
        Misconfigured: A module cannot be imported, or the application has no jobs.
    """
    module_name, attribute = _split(name)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    module = _import(module_name, f"check the name {name!r}")
    app = getattr(module, attribute, None)
    if not isinstance(app, Holdfast):
        raise Misconfigured(f"{module_name} has no Holdfast application named {attribute!r}")
    for other in include:
        _import(other, f"check --include {other}")
    if not app.registry.types():
        hint = hint_at_unimported(name) or f"decorate a function with @{attribute}.job"
        raise Misconfigured(f"{name} has no jobs: {hint}")
    app.registry.resolve()
    return app


def hint_at_unimported(name: str) -> str | None:
    """Describe modules that declare jobs of a loaded application and are not imported.

    Returns None if there are none in the folder of the application.
    """
    module_name, attribute = _split(name)
    missing = unimported_modules(sys.modules[module_name], attribute)
    if not missing:
        return None
    shown = ", ".join(missing[:5]) + (" and others" if len(missing) > 5 else "")
    verb = "declares jobs but is" if len(missing) == 1 else "declare jobs but are"
    flags = " ".join(f"--include {module}" for module in missing[:5])
    them = "it" if len(missing) == 1 else "them"
    return f"{shown} {verb} not imported, so they cannot run: import {them} in {module_name}, or add {flags}"


def _split(name: str) -> tuple[str, str]:
    module_name, _, attribute = name.partition(":")
    if not module_name:
        raise Misconfigured(f"{name!r} does not name an application: write module:attribute, such as myapp.jobs:app")
    return module_name, attribute or "app"


def _import(module_name: str, fix: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise Misconfigured(f"no module {error.name!r}, neither installed nor in {Path.cwd()}: {fix}") from error
        raise Misconfigured(
            f"{module_name} cannot be imported: it needs {error.name!r}, which is not installed"
        ) from error
    except Exception as error:  # the user's code runs here
        raise Misconfigured(f"{module_name} cannot be imported: {type(error).__name__}: {error}") from error


def parse_slots(text: str, registry: Registry, default: int = DEFAULT_SLOTS) -> dict[str, int]:
    """Parse `mail:10,default:5`; for an empty text, every queue gets the default slots."""
    if not text.strip():
        return dict.fromkeys(registry.queues(), default)
    slots: dict[str, int] = {}
    for part in text.split(","):
        queue, _, number = part.strip().partition(":")
        if not queue or queue in slots or not (number or "1").isdecimal() or not 1 <= int(number or 1) <= MAX_SLOTS:
            raise Misconfigured(
                f"--queues: invalid part {part.strip()!r}: write queue:slots, such as mail:10,default:5, "
                f"with each queue once and 1 to {MAX_SLOTS} slots"
            )
        slots[queue] = int(number) if number else default
    return slots
