"""HTTP: health, metrics, and a web page for people who look after a cluster.

Primitives: `opening.site` serves a node's own port, where it is configured. Behind it,
`metrics` writes what Prometheus reads, and `api` has the data of the page: it asks all
brokers of the cluster as `mqadmin` does, over remoting, so the brokers' own processors
answer, with their own rules. The page itself is in `static`, as browsers get it.
"""
