"""Events, and the logs and metrics made from them."""
