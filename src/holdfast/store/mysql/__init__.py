"""MySQL 8.0 and MariaDB 10.6 or newer, through asyncmy."""
