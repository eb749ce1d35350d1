"""Wire types of the HTTP API and their conversion from and to the model."""
