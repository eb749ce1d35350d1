"""OpenAPI 3.1 description of the API, generated from the route table and the wire types."""
