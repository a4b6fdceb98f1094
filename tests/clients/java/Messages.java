// Between the words of the protocol and the client's message classes.

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;

final class Messages {
    private Messages() { }

    static Message build(String topic, Command wanted) {
        var body = wanted.text("body").getBytes(StandardCharsets.UTF_8);
        var message = new Message(topic, body);
        if (wanted.has("tags")) {
            message.setTags(wanted.text("tags"));
        }
        if (wanted.has("keys")) {
            message.setKeys(wanted.text("keys"));
        }
        if (wanted.has("delay_level")) {
            message.setDelayTimeLevel((int) wanted.number("delay_level", 0));
        }
        Timing.apply(wanted, message);
        wanted.texts("properties").forEach(message::putUserProperty);
        return message;
    }

    static String body(Message message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }

    static Map<String, Object> describe(MessageExt message) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("body", body(message));
        fields.put("topic", message.getTopic());
        fields.put("queue", message.getQueueId());
        fields.put("offset", message.getQueueOffset());
        fields.put("msg_id", message.getMsgId());
        if (message instanceof MessageClientExt received) {
            fields.put("offset_msg_id", received.getOffsetMsgId());
        }
        fields.put("reconsume_times", message.getReconsumeTimes());
        fields.put("tags", message.getTags());
        fields.put("keys", message.getKeys());
        fields.put("properties", new HashMap<>(message.getProperties()));
        fields.put("sys_flag", message.getSysFlag());
        fields.put("born_ms", message.getBornTimestamp());
        fields.put("stored_ms", message.getStoreTimestamp());
        fields.put("at_ms", System.currentTimeMillis());
        return fields;
    }

    static Map<String, Object> describe(SendResult result) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("status", result.getSendStatus().name());
        fields.put("topic", result.getMessageQueue().getTopic());
        fields.put("broker", result.getMessageQueue().getBrokerName());
        fields.put("queue", result.getMessageQueue().getQueueId());
        fields.put("offset", result.getQueueOffset());
        fields.put("msg_id", result.getMsgId());
        fields.put("offset_msg_id", result.getOffsetMsgId());
        fields.put("recall_handle", Timing.recallHandle(result));
        return fields;
    }

    /** The response code is -1 where the error is not an answer of the broker. */
    static Map<String, Object> describe(Throwable error) {
        int code = -1;
        if (error instanceof MQBrokerException answer) {
            code = answer.getResponseCode();
        } else if (error instanceof MQClientException own) {
            code = own.getResponseCode();
        }
        Throwable cause = error.getCause();
        return Map.of(
            "type", error.getClass().getSimpleName(),
            "code", code,
            "error", String.valueOf(error.getMessage()),
            "cause", cause == null ? "" : String.valueOf(cause.getMessage()));
    }
}
