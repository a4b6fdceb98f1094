"""Moving queues between brokers by load, unasked: `opening.balancing` begins it."""
