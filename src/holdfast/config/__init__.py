"""Settings from flags, the environment and `holdfast.toml`."""

from holdfast.config.load import FILE, FILE_VARIABLE, load
from holdfast.config.settings import SETTINGS, Setting, Settings, shown_url

__all__ = ["FILE", "FILE_VARIABLE", "SETTINGS", "Setting", "Settings", "load", "shown_url"]
