"""Sending tickets to trackers: addresses, the trackers themselves, the outbox, and what posts from it.

Nothing here is loaded before a person asks to send; no client library is loaded before something is really sent.
"""
