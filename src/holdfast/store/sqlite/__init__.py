"""SQLite 3.51.3 and newer, through APSW: one file, any number of processes on one machine."""
