"""Mutation testing: small changes to the sources, each of which a test must notice."""
