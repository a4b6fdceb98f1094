"""Finding a provider by its URL's scheme, among the entry points `ropeway.tier`."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from ropeway.storage.api import LogUnfitError

if TYPE_CHECKING:
    from ropeway.storage.tiered.api import Provider

GROUP = "ropeway.tier"


def open_provider(url: str) -> Provider:
    """The provider that a URL names.

    Raises:
        LogUnfitError: Nothing installed knows its scheme, or the URL cannot be used.
    """
    scheme = url.partition(":")[0]
    known = {point.name: point for point in entry_points(group=GROUP)}
    if scheme not in known:
        raise LogUnfitError(
            f"{url} names a provider {scheme!r}; "
            f"allowed: {', '.join(sorted(known))}, as what is installed has it"
        )
    try:
        provider: Provider = known[scheme].load()(url)
    except ImportError as error:
        raise LogUnfitError(
            f"{error.name} is not installed; it comes with: pip install ropeway[tier]"
        ) from error
    except ValueError as error:
        raise LogUnfitError(f"{url} cannot be used: {error}") from error
    return provider
