"""PostgreSQL 13 and newer, through asyncpg."""
