#!/bin/sh
# Writes the settings that the environment asks for, and becomes the server.
set -eu
if [ "$(id -u)" = 0 ]; then
    chown -R zookeeper /data /datalog /logs
    exec setpriv --reuid=zookeeper --regid=zookeeper --init-groups "$0" "$@"
fi
cat >/conf/zoo.cfg <<SETTINGS
dataDir=/data
dataLogDir=/datalog
clientPort=2181
tickTime=${ZOO_TICK_TIME:-2000}
initLimit=${ZOO_INIT_LIMIT:-5}
syncLimit=${ZOO_SYNC_LIMIT:-2}
autopurge.purgeInterval=${ZOO_AUTOPURGE_PURGEINTERVAL:-0}
maxClientCnxns=${ZOO_MAX_CLIENT_CNXNS:-60}
admin.enableServer=${ZOO_ADMINSERVER_ENABLED:-true}
4lw.commands.whitelist=${ZOO_4LW_COMMANDS_WHITELIST:-srvr}
SETTINGS
exec java -Xmx256m -cp '/zookeeper/*' org.apache.zookeeper.server.quorum.QuorumPeerMain /conf/zoo.cfg
