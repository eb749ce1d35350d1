"""Wake-ups within and between processes."""
