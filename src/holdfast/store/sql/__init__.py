"""Code that all SQL databases share."""
