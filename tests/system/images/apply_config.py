#!/usr/bin/env python3
"""Put a container's environment into a Pulsar's configuration, as Pulsar's image does.

A variable that is named like a setting, with or without the prefix, replaces it, where
it is commented out, too. One with the prefix that no line names is added.
"""

import os
import re
import sys
from pathlib import Path

PREFIX = "PULSAR_PREFIX_"

for name in sys.argv[1:]:
    file = Path(name)
    lines = file.read_text().splitlines()
    given = {k.removeprefix(PREFIX): v.strip() for k, v in os.environ.items()}
    left = {k.removeprefix(PREFIX) for k in os.environ if k.startswith(PREFIX)}
    for at, line in enumerate(lines):
        found = re.match(r"#?\s*([^=\s]+)\s*=", line)
        if found and found[1] in given:
            lines[at] = f"{found[1]}={given[found[1]]}"
            left.discard(found[1])
    lines += [f"{key}={given[key]}" for key in sorted(left)]
    file.write_text("".join(f"{line}\n" for line in lines))
