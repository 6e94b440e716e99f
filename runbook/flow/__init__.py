"""The flow model: loading, lint, schema and drawings of decision trees."""
