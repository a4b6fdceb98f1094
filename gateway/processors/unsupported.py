"""Commands that are not handled, each with the reason that clients read.

Every code that RocketMQ knows is in `PROCESSORS` or here, and never in both. A reason
says why there is no such thing here, and what to use instead where there is something.
What is never decoded needs no header: most of these have none.
"""

from __future__ import annotations

from ropeway.gateway.wire.codes import RequestCode as Code

_FAMILIES: dict[str, tuple[Code, ...]] = {
    "it is a broker's request to a client, not a client's to a broker": (
        Code.CHECK_TRANSACTION_STATE,
        Code.NOTIFY_CONSUMER_IDS_CHANGED,
        Code.RESET_CONSUMER_CLIENT_OFFSET,
        Code.GET_CONSUMER_STATUS_FROM_CLIENT,
        Code.PUSH_REPLY_MESSAGE_TO_CLIENT,
        Code.NOTIFY_UNSUBSCRIBE_LITE,
    ),
    "slaves of RocketMQ ask for it; the nodes here follow one log": (
        Code.GET_TIMER_CHECK_POINT,
        Code.GET_TIMER_METRICS,
    ),
    "accounts of ACL 1.0 are in plain_acl.yml, which is read again when it changes; "
    "users of ACL 2.0 are changed by createUser and createAcl": (
        Code.UPDATE_AND_CREATE_ACL_CONFIG,
        Code.DELETE_ACL_CONFIG,
        Code.GET_BROKER_CLUSTER_ACL_INFO,
        Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
        Code.GET_BROKER_CLUSTER_ACL_CONFIG,
    ),
    "settings are in the configuration file, and are read when a node starts": (
        Code.UPDATE_NAMESRV_CONFIG,
    ),
    "brokers of RocketMQ cannot join; the brokers here register by themselves": (
        Code.REGISTER_BROKER,
        Code.UNREGISTER_BROKER,
        Code.QUERY_DATA_VERSION,
        Code.REGISTER_TOPIC_IN_NAMESRV,
        Code.GET_BROKER_MEMBER_GROUP,
        Code.BROKER_HEARTBEAT,
        Code.NOTIFY_MIN_BROKER_ID_CHANGE,
    ),
    "access rules keep a user from a topic, and so its groups": (
        Code.UPDATE_AND_GET_GROUP_FORBIDDEN,
    ),
    "no node copies another: the log keeps the copies, and each node reads them": (
        Code.GET_ALL_CONSUMER_OFFSET,
        Code.GET_ALL_DELAY_OFFSET,
        Code.EXCHANGE_BROKER_HA_INFO,
        Code.GET_BROKER_HA_STATUS,
        Code.RESET_MASTER_FLUSH_OFFSET,
        Code.GET_BROKER_EPOCH_CACHE,
        Code.NOTIFY_BROKER_ROLE_CHANGED,
    ),
    "there is no controller: the route store tells who leads; see clusterList": (
        Code.CONTROLLER_ALTER_SYNC_STATE_SET,
        Code.CONTROLLER_ELECT_MASTER,
        Code.CONTROLLER_REGISTER_BROKER,
        Code.CONTROLLER_GET_REPLICA_INFO,
        Code.CONTROLLER_GET_METADATA_INFO,
        Code.CONTROLLER_GET_SYNC_STATE_DATA,
        Code.UPDATE_CONTROLLER_CONFIG,
        Code.GET_CONTROLLER_CONFIG,
        Code.CLEAN_BROKER_DATA,
        Code.CONTROLLER_GET_NEXT_BROKER_ID,
        Code.CONTROLLER_APPLY_BROKER_ID,
        Code.BROKER_CLOSE_CHANNEL_REQUEST,
        Code.CHECK_NOT_ACTIVE_BROKER_REQUEST,
        Code.GET_BROKER_LIVE_INFO_REQUEST,
        Code.GET_SYNC_STATE_DATA_REQUEST,
        Code.RAFT_BROKER_HEART_BEAT_EVENT_REQUEST,
    ),
    "there is no broker container; more brokers are more processes: serve --workers": (
        Code.ADD_BROKER,
        Code.REMOVE_BROKER,
    ),
    "queues do not move from broker to broker; a topic gets more with updateTopic": (
        Code.UPDATE_AND_CREATE_STATIC_TOPIC,
    ),
    "how far files are read ahead is the operating system's choice": (
        Code.SET_COMMITLOG_READ_MODE,
    ),
    "nothing of a topic or group is in RocksDB; exportMetadata writes it as JSON": (
        Code.CHECK_ROCKSDB_CQ_WRITE_PROGRESS,
        Code.EXPORT_ROCKSDB_CONFIG_TO_JSON,
    ),
    "there is one timer, and no other to switch to": (Code.SWITCH_TIMER_ENGINE,),
    "messages of lite topics are acknowledged as others are": (Code.ACK_LITE_MESSAGE,),
    "RocketMQ 5.5's own brokers do not know it either": (
        Code.QUERY_BROKER_OFFSET,
        Code.GET_TOPIC_CONFIG_LIST,
        Code.GET_TOPIC_NAME_LIST,
        Code.TRIGGER_DELETE_FILES,
        Code.GET_CLIENT_CONFIG,
        Code.SUSPEND_CONSUMER,
        Code.RESUME_CONSUMER,
        Code.RESET_CONSUMER_OFFSET_IN_CONSUMER,
        Code.RESET_CONSUMER_OFFSET_IN_BROKER,
        Code.ADJUST_CONSUMER_THREAD_POOL,
        Code.WHO_CONSUME_THE_MESSAGE,
        Code.REGISTER_FILTER_SERVER,
        Code.REGISTER_MESSAGE_FILTER_CLASS,
    ),
}

REASONS: dict[int, str] = {
    code: reason for reason, codes in _FAMILIES.items() for code in codes
}
"""Why a command is not handled, by its code."""
