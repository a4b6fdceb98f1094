"""The data of the page, as JSON: one module a view.

Lists are paged and searched here, so that a page shows the first of 10,000 topics as
quickly as the first of ten.
"""

from ropeway.gateway.http.api import (
    access,
    clients,
    dead_letters,
    delayed,
    group_changes,
    groups,
    history,
    messages,
    offsets,
    overview,
    routes,
    topic_changes,
    topics,
    user_changes,
    users,
)

ROUTES = [
    *overview.ROUTES,
    *topics.ROUTES,
    *topic_changes.ROUTES,
    *groups.ROUTES,
    *group_changes.ROUTES,
    *history.ROUTES,
    *clients.ROUTES,
    *messages.ROUTES,
    *offsets.ROUTES,
    *dead_letters.ROUTES,
    *routes.ROUTES,
    *access.ROUTES,
    *users.ROUTES,
    *user_changes.ROUTES,
    *delayed.ROUTES,
]
"""Every address of the API with what answers it."""
