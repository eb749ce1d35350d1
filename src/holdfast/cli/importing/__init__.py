"""Import of unfinished jobs from the tables of the source systems."""
