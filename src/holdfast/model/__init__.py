"""The values everything else is written in. Imports nothing else of holdfast."""
