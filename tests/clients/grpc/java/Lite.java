// The consume_lite, subscribe_lite and unsubscribe_lite commands.

import java.util.List;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.LitePushConsumer;
import org.apache.rocketmq.client.apis.consumer.OffsetOption;

final class Lite {
    private Lite() { }

    static void consume(Command command) throws Exception {
        LitePushConsumer consumer = Messages.CLIENTS.newLitePushConsumerBuilder()
            .setClientConfiguration(command.configuration())
            .setConsumerGroup(command.text("group"))
            .bindTopic(command.text("topic"))
            .setMessageListener(message ->
                Consuming.accept(command, message)
                    ? ConsumeResult.SUCCESS : ConsumeResult.FAILURE)
            .build();
        Agent.RUNNING.put(command.id, consumer);
    }

    static void subscribe(Command command) throws Exception {
        var consumer = (LitePushConsumer) Agent.RUNNING.get(target(command));
        if (command.has("tail")) {
            consumer.subscribeLite(
                command.text("lite_topic"),
                OffsetOption.ofTailN(command.number("tail", 0)));
        } else {
            consumer.subscribeLite(command.text("lite_topic"));
        }
        tell(command, consumer);
    }

    static void unsubscribe(Command command) throws Exception {
        var consumer = (LitePushConsumer) Agent.RUNNING.get(target(command));
        consumer.unsubscribeLite(command.text("lite_topic"));
        tell(command, consumer);
    }

    private static int target(Command command) {
        return (int) command.number("target", 0);
    }

    private static void tell(Command command, LitePushConsumer consumer) {
        command.emit("subscribed",
            java.util.Map.of("lite_topics", List.copyOf(consumer.getLiteTopicSet())));
    }
}
