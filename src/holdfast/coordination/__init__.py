"""What nodes share beside the jobs. The database is the truth; Redis may wake, remember and refuse early."""
