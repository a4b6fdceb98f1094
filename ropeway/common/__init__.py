"""What clients, gateway, logs and access control all use: nothing of ours below it."""
