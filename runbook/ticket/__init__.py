"""Tickets: the transcript of a session, redacted and rendered."""
