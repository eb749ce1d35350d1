"""holdfast: a fault-tolerant, multi-tenant job engine on the database you already run."""

__version__ = "0.1.0"
