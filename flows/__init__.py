"""What the guide knows, one YAML file a flow, and the vocabulary of causes."""
