"""Pulsar's own access control: its tokens and its permissions.

A client's access key is a token (JWT), its secret key is not used: what stock clients
sign with it proves nothing that the token does not. `tokens` verifies, `permissions`
asks Pulsar what the token's role may do, `hook` joins the two.
"""

from ropeway.acl.pulsar.hook import open_hook

__all__ = ["open_hook"]
