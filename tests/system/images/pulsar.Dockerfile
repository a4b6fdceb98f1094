# Apache Pulsar from Maven's archive, as its own image has it: no root, with curl.
ARG BASE
FROM $BASE
COPY apache-pulsar /pulsar
COPY apply_config.py /pulsar/bin/apply-config-from-env.py
# In the image that is released, a user of the group root owns what is written.
RUN chmod 0755 /pulsar/bin/apply-config-from-env.py \
    && useradd --uid 10000 --gid 0 --no-create-home --home-dir /pulsar/data pulsar \
    && mkdir -p /pulsar/data /pulsar/logs \
    && chown -R 10000:0 /pulsar/conf /pulsar/data /pulsar/logs
ENV PULSAR_PID_DIR=/pulsar/logs
WORKDIR /pulsar
USER 10000
