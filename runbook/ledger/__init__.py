"""What earlier sessions found: the fingerprint of a confirmed cause, the file they are kept in, and what is said."""
