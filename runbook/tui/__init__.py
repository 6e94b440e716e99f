"""The terminal UI: the only part that knows Textual."""
