"""Tests that start a real Ray cluster of their own."""
