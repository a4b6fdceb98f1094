"""Logs: the contract in `api`, one package a backend, and consumer offsets."""
