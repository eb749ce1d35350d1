"""Settings from flags, the environment and `holdfast.toml`."""

from holdfast.config.definitions import SETTINGS, Setting, shown_url
from holdfast.config.load import FILE, FILE_VARIABLE, load
from holdfast.config.settings import Settings

__all__ = ["FILE", "FILE_VARIABLE", "SETTINGS", "Setting", "Settings", "load", "shown_url"]
