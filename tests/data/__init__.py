"""Data of the tests."""
