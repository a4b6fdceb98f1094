// Between the words of the protocol and the client's message classes.

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageView;

final class Messages {
    static final ClientServiceProvider CLIENTS = ClientServiceProvider.loadService();

    private Messages() { }

    static Message build(String topic, Command wanted) {
        var builder = CLIENTS.newMessageBuilder()
            .setTopic(topic)
            .setBody(wanted.text("body").getBytes(StandardCharsets.UTF_8));
        if (wanted.has("tags")) {
            builder.setTag(wanted.text("tags"));
        }
        if (wanted.has("keys")) {
            builder.setKeys(wanted.text("keys").split(" "));
        }
        if (wanted.has("group")) {
            builder.setMessageGroup(wanted.text("group"));
        }
        if (wanted.has("priority")) {
            builder.setPriority((int) wanted.number("priority", 0));
        }
        if (wanted.has("lite_topic")) {
            builder.setLiteTopic(wanted.text("lite_topic"));
        }
        if (wanted.has("delay_ms")) {
            builder.setDeliveryTimestamp(
                System.currentTimeMillis() + wanted.number("delay_ms", 0));
        }
        wanted.texts("properties").forEach(builder::addProperty);
        return builder.build();
    }

    static Map<String, Object> describe(MessageView message) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("body", StandardCharsets.UTF_8.decode(message.getBody()).toString());
        fields.put("topic", message.getTopic());
        fields.put("msg_id", message.getMessageId().toString());
        fields.put("tags", message.getTag().orElse(null));
        fields.put("keys", String.join(" ", message.getKeys()));
        fields.put("properties", new HashMap<>(message.getProperties()));
        fields.put("group", message.getMessageGroup().orElse(null));
        fields.put("priority", message.getPriority().orElse(null));
        fields.put("lite_topic", message.getLiteTopic().orElse(null));
        fields.put("attempt", message.getDeliveryAttempt());
        fields.put("at_ms", System.currentTimeMillis());
        return fields;
    }

    static Map<String, Object> describe(Throwable error) {
        return Map.of(
            "type", error.getClass().getSimpleName(),
            "code", -1,
            "error", String.valueOf(error.getMessage()));
    }
}
