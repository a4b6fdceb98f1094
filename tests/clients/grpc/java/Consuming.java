// The consume and poll commands: consumers that run until they are stopped.

import java.time.Duration;
import java.util.Map;
import org.apache.rocketmq.client.apis.ClientException;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.FilterExpressionType;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.MessageView;

final class Consuming {
    private static final int BATCH = 16;
    private static final Duration WAIT = Duration.ofSeconds(5);

    private Consuming() { }

    static void push(Command command) throws Exception {
        var consumer = Messages.CLIENTS.newPushConsumerBuilder()
            .setClientConfiguration(command.configuration())
            .setConsumerGroup(command.text("group"))
            .setSubscriptionExpressions(Map.of(command.text("topic"), filter(command)))
            .setMessageListener(message ->
                accept(command, message) ? ConsumeResult.SUCCESS : ConsumeResult.FAILURE)
            .build();
        Agent.RUNNING.put(command.id, consumer);
    }

    /** Acknowledges what it accepts, and keeps the rest for {@code change_ms} only. */
    static void poll(Command command) throws Exception {
        var consumer = Messages.CLIENTS.newSimpleConsumerBuilder()
            .setClientConfiguration(command.configuration())
            .setConsumerGroup(command.text("group"))
            .setAwaitDuration(WAIT)
            .setSubscriptionExpressions(Map.of(command.text("topic"), filter(command)))
            .build();
        Agent.RUNNING.put(command.id, consumer);
        new Thread(() -> receive(command, consumer), "poll-" + command.id).start();
    }

    private static void receive(Command command, SimpleConsumer consumer) {
        var invisible = Duration.ofMillis(command.number("invisible_ms", 60_000));
        var change = Duration.ofMillis(command.number("change_ms", 0));
        while (Agent.RUNNING.containsKey(command.id)) {
            try {
                for (MessageView one : consumer.receive(BATCH, invisible)) {
                    if (accept(command, one)) {
                        consumer.ack(one);
                    } else {
                        consumer.changeInvisibleDuration(one, change);
                    }
                }
            } catch (ClientException | IllegalStateException error) {
                // It is stopped, or the server is away: the next one shows.
                command.emit("missed", Messages.describe(error));
            }
        }
    }

    static boolean accept(Command command, MessageView message) {
        boolean accepted = message.getDeliveryAttempt() > command.number("fail", 0);
        var fields = Messages.describe(message);
        fields.put("accepted", accepted);
        command.emit("received", fields);
        return accepted;
    }

    private static FilterExpression filter(Command command) {
        if (command.has("sql")) {
            return new FilterExpression(command.text("sql"), FilterExpressionType.SQL92);
        }
        return new FilterExpression(command.text("tags", "*"));
    }
}
