# Apache ZooKeeper from Maven's jars, as the official image has it: what the
# environment says goes into its settings, and it runs without root.
ARG BASE
FROM $BASE
COPY jars /zookeeper
COPY zookeeper.sh /docker-entrypoint.sh
RUN chmod 0755 /docker-entrypoint.sh \
    && useradd --uid 1000 --create-home zookeeper \
    && install -d -o zookeeper -g zookeeper /conf /data /datalog /logs
VOLUME ["/data", "/datalog", "/logs"]
EXPOSE 2181 2888 3888 8080
ENTRYPOINT ["/docker-entrypoint.sh"]
