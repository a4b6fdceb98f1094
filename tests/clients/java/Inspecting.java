// The commands that look at a topic: offsets, single messages, keys; and create one.

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeSet;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

@SuppressWarnings("deprecation")
final class Inspecting {
    private static final int MOST_FOUND = 32;

    private Inspecting() { }

    static void offsets(Command command) throws Exception {
        DefaultMQProducer producer = Producing.open(command);
        String topic = command.text("topic");
        for (MessageQueue queue : new TreeSet<>(producer.fetchPublishMessageQueues(topic))) {
            Map<String, Object> fields = new LinkedHashMap<>();
            fields.put("queue", queue.getQueueId());
            fields.put("min", producer.minOffset(queue));
            fields.put("max", producer.maxOffset(queue));
            fields.put("earliest_ms", producer.earliestMsgStoreTime(queue));
            if (command.has("timestamp_ms")) {
                fields.put("found", producer.searchOffset(queue, command.number("timestamp_ms", 0)));
            }
            command.emit("offsets", fields);
        }
    }

    static void view(Command command) throws Exception {
        MessageExt found = Producing.open(command)
            .viewMessage(command.text("topic"), command.text("message_id"));
        command.emit("received", Messages.describe(found));
    }

    static void query(Command command) throws Exception {
        Producing.open(command).queryMessage(
            command.text("topic"), command.text("key"), MOST_FOUND,
            command.number("begin_ms", 0), command.number("end_ms", Long.MAX_VALUE))
            .getMessageList().forEach(message ->
                command.emit("received", Messages.describe(message)));
    }

    static void createTopic(Command command) throws Exception {
        // The public method takes a map in 5.x and none in 4.9: one level down they agree.
        Producing.open(command).getDefaultMQProducerImpl().createTopic(
            "TBW102", command.text("topic"), (int) command.number("queues", 4));
    }
}
