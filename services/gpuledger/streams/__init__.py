"""Topics over files or Kafka behind one protocol."""
