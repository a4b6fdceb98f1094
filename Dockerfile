# An image of Ropeway. Built by BuildKit, which Docker has by default since 23.0:
#
#   docker build --tag ropeway .
#   docker run --init --publish 127.0.0.1:9876:9876 --volume ropeway:/data ropeway

FROM python:3.11.15-slim-bookworm AS base
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_NO_INPUT=1 \
    PIP_ROOT_USER_ACTION=ignore


# All that is installed, as wheels: the image itself gets no compiler and no network.
FROM base AS builder
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev
WORKDIR /build
COPY . .
RUN pip wheel --wheel-dir /wheels --no-deps --require-hashes --requirement requirements/image.txt \
    && pip wheel --wheel-dir /wheels --no-deps .


FROM base
RUN groupadd --gid 10876 ropeway \
    && useradd --uid 10876 --gid ropeway --no-create-home --home-dir /data ropeway \
    && install --directory --mode 0700 --owner ropeway --group ropeway /data
# pip goes on without what cannot be compiled; the imports make that an error here.
RUN --mount=type=bind,from=builder,source=/wheels,target=/wheels \
    pip install --no-index --find-links /wheels "ropeway[acl,grpc,pulsar,tier,zookeeper]" \
    && python -c "import ropeway.gateway.wire._native, ropeway.storage.compaction._native, ropeway.storage.file._native, ropeway.storage.file._reading, ropeway.storage.sealed._native"
# By number, so that a platform that refuses root can see that it is not.
USER 10876:10876
WORKDIR /data
VOLUME /data
EXPOSE 9876
HEALTHCHECK --interval=15s --timeout=10s --start-period=60s --retries=3 \
    CMD ["ropeway", "topic", "list", "--name-server", "127.0.0.1:9876"]
ENTRYPOINT ["ropeway"]
CMD ["serve", "--data", "/data", "--listen", "0.0.0.0:9876=localhost:9876"]
