"""What the supervisor starts for each worker, by `python -m`."""

from __future__ import annotations

from ropeway.gateway.fast_imports import quickly

with quickly():
    from ropeway.gateway.worker import main

if __name__ == "__main__":
    main()
