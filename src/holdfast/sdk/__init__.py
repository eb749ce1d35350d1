"""HTTP clients of the service, for applications and for workers without a database."""
