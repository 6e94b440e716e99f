"""Test suite; mirrors the source tree."""
