"""The change log and the statistics derived from it."""
