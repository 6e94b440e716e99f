"""The bundle: a session in one file that opens anywhere, with nothing private in it."""
