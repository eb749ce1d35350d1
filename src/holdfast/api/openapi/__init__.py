"""OpenAPI 3.1 description of the HTTP API, generated from the route table and the wire types."""
