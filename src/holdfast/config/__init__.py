"""Settings: from flags, the environment and `holdfast.toml`, parsed once, frozen."""

from holdfast.config.load import FILE, FILE_VARIABLE, load
from holdfast.config.settings import KNOWN, Setting, Settings, shown_url

__all__ = ["FILE", "FILE_VARIABLE", "KNOWN", "Setting", "Settings", "load", "shown_url"]
