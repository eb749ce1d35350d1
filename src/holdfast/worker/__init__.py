"""Workers: claim jobs, run their handlers and report the outcomes."""
