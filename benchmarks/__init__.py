"""Figures beside their yardsticks, measured in the same run on the same machine. No test asserts a time."""
