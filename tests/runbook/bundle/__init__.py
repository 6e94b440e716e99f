"""Tests of the bundle."""
