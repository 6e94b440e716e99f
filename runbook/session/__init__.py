"""Sessions: an append-only journal and the state it folds into."""
