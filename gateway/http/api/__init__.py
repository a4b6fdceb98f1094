"""The data of the page, as JSON: one module a view.

Lists are paged and searched here, so that a page shows the first of 10,000 topics as
quickly as the first of ten.
"""

from ropeway.gateway.http.api import (
    access,
    clients,
    dead_letters,
    groups,
    messages,
    overview,
    routes,
    topics,
)

ROUTES = [
    *overview.ROUTES,
    *topics.ROUTES,
    *groups.ROUTES,
    *clients.ROUTES,
    *messages.ROUTES,
    *dead_letters.ROUTES,
    *routes.ROUTES,
    *access.ROUTES,
]
"""Every address of the API with what answers it."""
