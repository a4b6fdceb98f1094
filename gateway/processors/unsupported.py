"""Commands that are declared and not handled, each with the reason that clients read.

A command is in `PROCESSORS` or here, and never in both.
"""

from __future__ import annotations

from gateway.wire.codes import RequestCode as Code

_FAMILIES: dict[str, tuple[Code, ...]] = {
    "it is a broker's request to a client, not a client's to a broker": (
        Code.CHECK_TRANSACTION_STATE,
        Code.NOTIFY_CONSUMER_IDS_CHANGED,
        Code.RESET_CONSUMER_CLIENT_OFFSET,
        Code.GET_CONSUMER_STATUS_FROM_CLIENT,
        Code.PUSH_REPLY_MESSAGE_TO_CLIENT,
    ),
    "transactions come later": (
        Code.END_TRANSACTION,
        Code.RESUME_CHECK_HALF_MESSAGE,
    ),
    "request and reply come later": (
        Code.SEND_REPLY_MESSAGE,
        Code.SEND_REPLY_MESSAGE_V2,
    ),
    "pop consumption comes later": (
        Code.POP_MESSAGE,
        Code.ACK_MESSAGE,
        Code.BATCH_ACK_MESSAGE,
        Code.PEEK_MESSAGE,
        Code.CHANGE_MESSAGE_INVISIBLETIME,
        Code.NOTIFICATION,
        Code.POLLING_INFO,
        Code.QUERY_ASSIGNMENT,
        Code.SET_MESSAGE_REQUEST_MODE,
        Code.GET_ALL_MESSAGE_REQUEST_MODE,
    ),
    "messages with a delivery time of their own come later": (
        Code.GET_TIMER_CHECK_POINT,
        Code.GET_TIMER_METRICS,
        Code.RECALL_MESSAGE,
    ),
    "access rules come later": (
        Code.UPDATE_AND_CREATE_ACL_CONFIG,
        Code.DELETE_ACL_CONFIG,
        Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
        Code.GET_BROKER_CLUSTER_ACL_CONFIG,
        Code.AUTH_CREATE_USER,
        Code.AUTH_UPDATE_USER,
        Code.AUTH_DELETE_USER,
        Code.AUTH_GET_USER,
        Code.AUTH_LIST_USER,
        Code.AUTH_CREATE_ACL,
        Code.AUTH_UPDATE_ACL,
        Code.AUTH_DELETE_ACL,
        Code.AUTH_GET_ACL,
        Code.AUTH_LIST_ACL,
    ),
    "settings are changed in the configuration file, followed by a restart": (
        Code.UPDATE_BROKER_CONFIG,
        Code.UPDATE_NAMESRV_CONFIG,
    ),
    "brokers of RocketMQ cannot join; the brokers here register by themselves": (
        Code.REGISTER_BROKER,
        Code.UNREGISTER_BROKER,
        Code.QUERY_DATA_VERSION,
        Code.REGISTER_TOPIC_IN_NAMESRV,
        Code.GET_ALL_CONSUMER_OFFSET,
        Code.GET_ALL_DELAY_OFFSET,
        Code.GET_BROKER_HA_STATUS,
    ),
    "a broker's write permission cannot be changed; each topic's can": (
        Code.WIPE_WRITE_PERM_OF_BROKER,
        Code.ADD_WRITE_PERM_OF_BROKER,
    ),
    "moving other clients' offsets comes later": (
        Code.INVOKE_BROKER_TO_RESET_OFFSET,
        Code.QUERY_CORRECTION_OFFSET,
        Code.CLONE_GROUP_OFFSET,
    ),
    "asking connected clients on behalf of others comes later": (
        Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
        Code.GET_CONSUMER_RUNNING_INFO,
        Code.CONSUME_MESSAGE_DIRECTLY,
    ),
    "topics that are split into units are not there": (
        Code.GET_UNIT_TOPIC_LIST,
        Code.GET_HAS_UNIT_SUB_TOPIC_LIST,
        Code.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
    ),
    "statistics of a broker come later; ask topic by topic and group by group": (
        Code.VIEW_BROKER_STATS_DATA,
        Code.GET_BROKER_CONSUME_STATS,
    ),
    "a group cannot be kept from one topic; access rules come later": (
        Code.UPDATE_AND_GET_GROUP_FORBIDDEN,
    ),
    "the log keeps no index entries of that form": (Code.QUERY_CONSUME_QUEUE,),
    "readers of old messages are not slowed down": (Code.GET_COLD_DATA_FLOW_CTR_INFO,),
    "lite topics are not there": (Code.GET_BROKER_LITE_INFO,),
}

REASONS: dict[int, str] = {
    code: reason for reason, codes in _FAMILIES.items() for code in codes
}
"""Why a command is not handled, by its code."""
