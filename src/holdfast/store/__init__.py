"""Where jobs are kept: one port, three databases."""
