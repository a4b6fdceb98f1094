# What the Dockerfile's base has: a Debian with Python and pip.
ARG BASE
FROM $BASE
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        python3 python3-venv python3-pip python3-dev ca-certificates \
    && apt-get clean \
    && rm -f /usr/lib/python3.*/EXTERNALLY-MANAGED \
    && ln -s python3 /usr/bin/python
