# What the images of ZooKeeper and Pulsar have in common.
ARG BASE
FROM $BASE
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        openjdk-17-jre-headless curl netcat-openbsd procps \
    && apt-get clean
