"""Import an application by its name, and parse the slots of its queues."""

import importlib
import sys
from pathlib import Path

from holdfast.app.holdfast import Holdfast
from holdfast.errors import Misconfigured
from holdfast.worker.handlers.registry import Registry

DEFAULT_SLOTS = 10
MAX_SLOTS = 1_000


def application(name: str) -> Holdfast:
    """Import an application; for an empty name, return one with only the built-in job types."""
    return load_app(name) if name else Holdfast()


def load_app(name: str) -> Holdfast:
    """Import `module:attribute`, with the current directory on the import path."""
    module_name, _, attribute = name.partition(":")
    if not module_name:
        raise Misconfigured(f"{name!r} does not name an application: write module:attribute, such as myapp.jobs:app")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise Misconfigured(
                f"no module {error.name!r}, neither installed nor in {here}: check the name {name!r}"
            ) from error
        raise Misconfigured(
            f"{module_name} cannot be imported: it needs {error.name!r}, which is not installed"
        ) from error
    except Exception as error:  # the user's code runs here
        raise Misconfigured(f"{module_name} cannot be imported: {type(error).__name__}: {error}") from error
    app = getattr(module, attribute or "app", None)
    if not isinstance(app, Holdfast):
        raise Misconfigured(f"{module_name} has no Holdfast application named {attribute or 'app'!r}")
    if not app.registry.types():
        raise Misconfigured(f"{name} has no jobs: decorate a function with @{attribute or 'app'}.job")
    app.registry.resolve()
    return app


def parse_slots(text: str, registry: Registry) -> dict[str, int]:
    """Parse `mail:10,default:5`; for an empty text, every queue gets the default slots."""
    if not text.strip():
        return dict.fromkeys(registry.queues(), DEFAULT_SLOTS)
    slots: dict[str, int] = {}
    for part in text.split(","):
        queue, _, number = part.strip().partition(":")
        if not queue or queue in slots or not (number or "1").isdecimal() or not 1 <= int(number or 1) <= MAX_SLOTS:
            raise Misconfigured(
                f"--queues: invalid part {part.strip()!r}: write queue:slots, such as mail:10,default:5, "
                f"with each queue once and 1 to {MAX_SLOTS} slots"
            )
        slots[queue] = int(number) if number else DEFAULT_SLOTS
    return slots
