"""The checks behind `holdfast doctor`."""
