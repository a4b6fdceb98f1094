"""`python -m gateway.worker_process`: what the supervisor starts for each worker."""

from __future__ import annotations

from gateway.importing import quickly

with quickly():
    from gateway.worker import main

if __name__ == "__main__":
    main()
