"""Finds the application somebody names as `module:attribute`, and reads how many slots each queue has."""

import importlib
import sys
from pathlib import Path

from holdfast.app.holdfast import Holdfast
from holdfast.errors import Misconfigured
from holdfast.worker.handlers.registry import Registry

DEFAULT_SLOTS = 10
MOST_SLOTS = 1_000


def application(name: str) -> Holdfast:
    """The application of this name; without one, one that has no jobs of its own."""
    return load_app(name) if name else Holdfast()


def load_app(name: str) -> Holdfast:
    """Import `module:attribute` from where the process was started."""
    module_name, _, attribute = name.partition(":")
    if not module_name:
        raise Misconfigured(f"{name!r} names no application: write module:attribute, such as myapp.jobs:app")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise Misconfigured(
                f"there is no module {error.name!r} (looked in {here} too): check the name {name!r}"
            ) from error
        raise Misconfigured(
            f"{module_name} cannot be imported: it needs {error.name!r}, which is not installed"
        ) from error
    except Exception as error:  # the user's code runs here
        raise Misconfigured(f"{module_name} cannot be imported: {type(error).__name__}: {error}") from error
    found = getattr(module, attribute or "app", None)
    if not isinstance(found, Holdfast):
        raise Misconfigured(f"{module_name} has no Holdfast application named {attribute or 'app'!r}")
    if not found.registry.types():
        raise Misconfigured(f"{name} has no jobs: decorate a function with @{attribute or 'app'}.job")
    found.registry.resolve()
    return found


def slots_of(text: str, registry: Registry) -> dict[str, int]:
    """Read `mail:10,default:5`; without it, every queue of the application has the default number of slots."""
    if not text.strip():
        return dict.fromkeys(registry.queues(), DEFAULT_SLOTS)
    slots: dict[str, int] = {}
    for part in text.split(","):
        queue, _, number = part.strip().partition(":")
        if not queue or queue in slots or not (number or "1").isdecimal() or not 1 <= int(number or 1) <= MOST_SLOTS:
            raise Misconfigured(
                f"--queues: {part.strip()!r} cannot be used: write queue:slots, such as mail:10,default:5, "
                f"each queue once, 1 to {MOST_SLOTS} slots"
            )
        slots[queue] = int(number) if number else DEFAULT_SLOTS
    return slots
