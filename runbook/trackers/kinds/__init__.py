"""The trackers we know, one module each with a module-level `TRACKER`. One is added by adding a module."""
