"""Value types shared by all packages; imports no other holdfast package."""
