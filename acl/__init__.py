"""Access control: who sends a request, and whether they may have it done.

`acl.api` is the contract: an `Authenticator` says who somebody is, an `Authorizer`
whether they may, a `Guard` asks a chain of both. The other modules are hooks for it.
"""
