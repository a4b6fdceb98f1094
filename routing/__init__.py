"""Routes: which topics and groups there are, and which broker has which queue."""
