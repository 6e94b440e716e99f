"""Flows of the tests, as a package whose files an entry point can name."""
