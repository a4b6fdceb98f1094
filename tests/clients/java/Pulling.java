// The `pull` and `committed` commands: the consumer that names its own offsets.

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.common.message.MessageQueue;

@SuppressWarnings("deprecation")
final class Pulling {
    private static final Map<String, DefaultMQPullConsumer> OPEN = new HashMap<>();
    private static final int BATCH = 8;

    private Pulling() { }

    /** The consumer of a group; it stays open, for its shutdown can take seconds. */
    private static synchronized DefaultMQPullConsumer open(Command command)
            throws Exception {
        String key = command.text("namesrv") + "|" + command.text("group");
        DefaultMQPullConsumer known = OPEN.get(key);
        if (known != null) {
            return known;
        }
        var consumer = new DefaultMQPullConsumer(command.text("group"));
        Options.apply(command, consumer);
        consumer.start();
        OPEN.put(key, consumer);
        return consumer;
    }

    /** Reads each queue to its end, or does one pull where `offset` is given. */
    static void pull(Command command) throws Exception {
        DefaultMQPullConsumer consumer = open(command);
        String topic = command.text("topic");
        for (MessageQueue queue : new TreeSet<>(consumer.fetchSubscribeMessageQueues(topic))) {
            if (command.number("queue", queue.getQueueId()) == queue.getQueueId()) {
                read(command, consumer, queue);
            }
        }
    }

    private static void read(
            Command command, DefaultMQPullConsumer consumer, MessageQueue queue)
            throws Exception {
        long next = command.has("offset")
            ? command.number("offset", 0) : consumer.minOffset(queue);
        PullResult result;
        do {
            result = consumer.pull(queue, command.text("tags", "*"), next, BATCH);
            next = result.getNextBeginOffset();
            if (result.getPullStatus() == PullStatus.FOUND) {
                result.getMsgFoundList().forEach(message ->
                    command.emit("received", Messages.describe(message)));
            }
        } while (!command.has("offset") && next < result.getMaxOffset());
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("queue", queue.getQueueId());
        fields.put("status", result.getPullStatus().name());
        fields.put("next", next);
        fields.put("min", result.getMinOffset());
        fields.put("max", result.getMaxOffset());
        command.emit("pulled", fields);
        if (command.flag("commit")) {
            consumer.updateConsumeOffset(queue, next);
            consumer.getDefaultMQPullConsumerImpl().getOffsetStore().persist(queue);
        }
    }

    static void committed(Command command) throws Exception {
        DefaultMQPullConsumer consumer = open(command);
        String topic = command.text("topic");
        for (MessageQueue queue : new TreeSet<>(consumer.fetchSubscribeMessageQueues(topic))) {
            command.emit("committed", Map.of(
                "queue", queue.getQueueId(),
                "offset", consumer.fetchConsumeOffset(queue, true)));
        }
    }
}
