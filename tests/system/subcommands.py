"""The sub-commands of mqadmin 5.5.0, and the command lines that try them.

In a line, {b} stands for the broker's address and {ns} for the name server's, {d} for a
folder, {id} and {key} for the offsetMsgId and the id of a message of topic L2.

L2 has one queue. A producer of the group `writers` has sent four messages to it, and
the consumer of the group `readers`, which goes on, has done them all. LT may have lite
topics, but has none.
"""

from ropeway.gateway.wire.codes import RequestCode as Code

FILES = {
    "topics.json": (
        '[{"topicName":"L1","readQueueNums":2,"writeQueueNums":2,"perm":6},'
        '{"topicName":"L2","readQueueNums":1,"writeQueueNums":1,"perm":6}]'
    ),
    "groups.json": '[{"groupName":"LG1","retryMaxTimes":5},{"groupName":"LG2"}]',
}
"""What stands in {d} before."""


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


MAKING = _lines("""
    updateTopic -t T1 -c DefaultCluster -r 4 -w 4
    updateTopic -t T2 -b {b} -r 2 -w 2 -u true -s true
    updateTopicList -b {b} -f {d}/topics.json
    updateSubGroup -c DefaultCluster -g G1 -r 3
    updateSubGroupList -b {b} -f {d}/groups.json
    sendMessage -t T1 -p hello -k key1 -c tagA -b broker-0 -i 0
    sendMessage -t T1 -p world -k key2 -c tagB -b broker-0 -i 0
    sendMessage -t T1 -p third -b broker-0 -i 1
    updateTopic -t LT -c DefaultCluster -r 1 -w 1 -a +message.type=LITE
    updateSubGroup -c DefaultCluster -g LTG --attributes +lite.bind.topic=LT
""")
"""What makes the topics and groups that others look at."""

UNTIL = {
    "consumerProgress -g readers": r"L2 broker-0 0 4 4 0 ",
    "statsAll -t L2": r"L2 readers 0 N N 4 4",
    "queryMsgByKey -t T1 -k key1": r"key1",
}
"""Lines whose answers may be of a moment ago, and what tells that they are of now."""

COMPARED = _lines("""
    consumerProgress -g readers
    consumerProgress
    consumerConnection -g readers
    producerConnection -g writers -t L2
    producer -b {b}
    statsAll -t L2
    topicList
    topicList -c
    topicRoute -t T1
    topicRoute -t T1 -l
    topicRoute -t none
    topicStatus -t T1
    topicClusterList -t T1
    clusterList
    clusterList -m
    brokerStatus -b {b}
    brokerStatus -c DefaultCluster
    getBrokerConfig -b {b}
    getNamesrvConfig
    getConsumerConfig -g G1
    queryCq -t T1 -q 0 -i 0 -c 5
    queryCq -t T1 -q 0 -i 1 -c 1 -g none
    queryCq -t L2 -q 0 -i 3 -g readers
    queryMsgById -i {id} -t L2
    queryMsgByUniqueKey -i {key} -t L2
    queryMsgByKey -t T1 -k key1
    queryMsgByKey -t T1 -k none
    queryMsgByOffset -t T1 -b broker-0 -i 0 -o 0
    queryMsgByOffset -t T1 -b broker-0 -i 0 -o 99
    printMsg -t T1
    printMsgByQueue -t T1 -a broker-0 -i 0 -p true
    consumeMessage -t T1 -b broker-0 -i 0 -o 0 -c 2
    cloneGroupOffset -s readers -d G1 -t L2 -o true
    exportConfigs -c DefaultCluster -f {d}
    exportMetadata -c DefaultCluster -f {d}
    exportMetadata -b {b} -t -f {d}
    exportMetadata -b {b} -g -f {d}
    exportMetrics -c DefaultCluster -f {d}
    allocateMQ -t T1 -i 10.0.0.1,10.0.0.2
    cleanExpiredCQ -b {b}
    cleanExpiredCQ -c DefaultCluster
    cleanUnusedTopic -b {b}
    cleanUnusedTopic -c DefaultCluster
    deleteExpiredCommitLog -b {b}
    updateTopicPerm -t T1 -b {b} -p 4
    topicRoute -t T1
    updateTopicPerm -t T1 -c DefaultCluster -p 6
    wipeWritePerm -b broker-0
    topicRoute -t T1
    addWritePerm -b broker-0
    topicRoute -t T1
    updateOrderConf -t T2 -m put -v broker-0:2
    updateOrderConf -t T2 -m get
    updateOrderConf -t T2 -m delete
    updateKvConfig -s NS -k K -v V
    deleteKvConfig -s NS -k K
    checkMsgSendRT -t L1 -a 3 -s 10
    sendMsgStatus -b broker-0 -s 10 -c 2
    briefly clusterRT -a 2 -s 10 -i 1
    resetOffsetByTime -g G1 -t T1 -s 0
    resetOffsetByTime -g readers -t L2 -s now
    skipAccumulatedMessage -g G1 -t T1
    skipAccumulatedMessage -g readers -t L2
    brokerConsumeStats -b {b}
    getBrokerLiteInfo -b {b}
    getBrokerLiteInfo -c DefaultCluster -d
    getParentTopicInfo -p LT
    getParentTopicInfo -p T1
    getLiteTopicInfo -p LT -l a -s
    getLiteTopicInfo -p T1 -l a
    getLiteClientInfo -p LT -g LTG -c nobody -s
    getLiteClientInfo -p LT -g G1 -c nobody
    getLiteGroupInfo -p LT -g LTG
    getLiteGroupInfo -p LT -g LTG -l a
    getLiteGroupInfo -p T1 -g G1
    triggerLiteDispatch -p LT -g LTG
    triggerLiteDispatch -p LT -g LTG -c nobody
    triggerLiteDispatch -p T1 -g G1
    deleteSubGroup -b {b} -g LG2
    deleteTopic -c DefaultCluster -t T2
    topicList
    dumpCompactionLog -f {d}/none
    exportMetadataInRocksDB -p {d} -t topics
    startMonitoring
""")
"""Lines that are run on RocketMQ and on Ropeway, and have to print the same."""

ASKING = _lines("""
    updateBrokerConfig -b {b} -k maxMessageSize -v 4000000
    updateNamesrvConfig -k clusterTest -v true
    resetMasterFlushOffset -b {b} -o 1
    haStatus -b {b}
    getSyncStateSet -a {ns} -b broker-0
    getBrokerEpoch -b broker-0
    getControllerMetaData -a {ns}
    getControllerConfig -a {ns}
    updateControllerConfig -a {ns} -k a -v b
    electMaster -a {ns} -b 1 -bn broker-0 -c DefaultCluster
    cleanBrokerMetadata -a {ns} -bn broker-0 -c DefaultCluster -b 1
    addBroker -c {b} -b none.conf
    removeBroker -c {b} -b DefaultCluster:broker-0:1
    getColdDataFlowCtrInfo -b {b}
    updateColdDataFlowCtrGroupConfig -b {b} -g G1 -v 10
    removeColdDataFlowCtrGroupConfig -b {b} -g G1
    setCommitLogReadAheadMode -b {b} -m 0
    updateStaticTopic -t S1 -b broker-0 -qn 2
    remappingStaticTopic -t T1 -b broker-0
    rocksDBConfigToJson -t topics -c DefaultCluster
    checkRocksdbCqWriteProgress -c DefaultCluster
    switchTimerEngine -b {b} -e F
    setConsumeMode -b {b} -t T1 -g G1 -m POP
    exportPopRecord -b {b}
    createUser -b {b} -u u -p p
    updateUser -b {b} -u u -p p
    deleteUser -b {b} -u u
    getUser -b {b} -u u
    listUser -b {b}
    copyUser -f {b} -t {b}
    createAcl -b {b} -s User:u -r Topic:T1 -a Pub -d Allow
    updateAcl -b {b} -s User:u -r Topic:T1 -a Pub -d Allow
    deleteAcl -b {b} -s User:u
    getAcl -b {b} -s User:u
    listAcl -b {b}
    copyAcl -f {b} -t {b}
    consumerStatus -g G1
""")
"""Lines that are refused with a reason, for as long as nobody handles their code."""

CODES = {
    "updateBrokerConfig": Code.UPDATE_BROKER_CONFIG,
    "updateNamesrvConfig": Code.UPDATE_NAMESRV_CONFIG,
    "resetMasterFlushOffset": Code.RESET_MASTER_FLUSH_OFFSET,
    "haStatus": Code.GET_BROKER_HA_STATUS,
    "getSyncStateSet": Code.CONTROLLER_GET_METADATA_INFO,
    "getBrokerEpoch": Code.GET_BROKER_EPOCH_CACHE,
    "getControllerMetaData": Code.CONTROLLER_GET_METADATA_INFO,
    "getControllerConfig": Code.GET_CONTROLLER_CONFIG,
    "updateControllerConfig": Code.UPDATE_CONTROLLER_CONFIG,
    "electMaster": Code.CONTROLLER_GET_METADATA_INFO,
    "cleanBrokerMetadata": Code.CONTROLLER_GET_METADATA_INFO,
    "addBroker": Code.ADD_BROKER,
    "removeBroker": Code.REMOVE_BROKER,
    "getColdDataFlowCtrInfo": Code.GET_COLD_DATA_FLOW_CTR_INFO,
    "updateColdDataFlowCtrGroupConfig": Code.UPDATE_COLD_DATA_FLOW_CTR_CONFIG,
    "removeColdDataFlowCtrGroupConfig": Code.REMOVE_COLD_DATA_FLOW_CTR_CONFIG,
    "setCommitLogReadAheadMode": Code.SET_COMMITLOG_READ_MODE,
    "updateStaticTopic": Code.UPDATE_AND_CREATE_STATIC_TOPIC,
    "remappingStaticTopic": Code.UPDATE_AND_CREATE_STATIC_TOPIC,
    "rocksDBConfigToJson": Code.EXPORT_ROCKSDB_CONFIG_TO_JSON,
    "checkRocksdbCqWriteProgress": Code.CHECK_ROCKSDB_CQ_WRITE_PROGRESS,
    "switchTimerEngine": Code.SWITCH_TIMER_ENGINE,
    "setConsumeMode": Code.SET_MESSAGE_REQUEST_MODE,
    "exportPopRecord": Code.POP_ROLLBACK,
    "createUser": Code.AUTH_CREATE_USER,
    "updateUser": Code.AUTH_UPDATE_USER,
    "deleteUser": Code.AUTH_DELETE_USER,
    "getUser": Code.AUTH_GET_USER,
    "listUser": Code.AUTH_LIST_USER,
    "copyUser": Code.AUTH_LIST_USER,
    "createAcl": Code.AUTH_CREATE_ACL,
    "updateAcl": Code.AUTH_UPDATE_ACL,
    "deleteAcl": Code.AUTH_DELETE_ACL,
    "getAcl": Code.AUTH_GET_ACL,
    "listAcl": Code.AUTH_LIST_ACL,
    "copyAcl": Code.AUTH_LIST_ACL,
    "consumerStatus": Code.GET_CONSUMER_RUNNING_INFO,
}
"""The code that a sub-command of `ASKING` stands or falls with."""

HIDING = {
    # It finds itself that the topic has no mapping.
    "remappingStaticTopic",
    # It asks consumers that are connected only.
    "consumerStatus",
}
"""Sub-commands that do not print why they are refused."""


def name_of(line: str) -> str:
    """The sub-command of a line."""
    return line.removeprefix("briefly ").split()[0]


SUB_COMMANDS = {
    *map(name_of, MAKING + COMPARED),
    *CODES,
    # It asks what queryMsgByKey does, of the topic that traced clients write to.
    "queryMsgTraceById",
}
"""Every one that there is."""
