"""Benchmarks of the engine through its public interface, with all guarantees enabled."""
