"""One module a format. Readers say what is written; they judge nothing."""
