// The `request` and `answer` commands: messages that wait for a reply, and their replies.

import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

@SuppressWarnings("deprecation")
final class Requesting {
    private static final long TIMEOUT_MS = 60_000;

    private Requesting() { }

    /** Sends each message and waits for its reply. */
    static void request(Command command) throws Exception {
        DefaultMQProducer producer = Producing.open(command);
        try {
            for (Command one : command.list("messages")) {
                request(command, producer, Messages.build(command.text("topic"), one));
            }
        } finally {
            if (command.flag("leave")) {
                producer.shutdown();
            }
        }
    }

    private static void request(Command command, DefaultMQProducer producer, Message message)
            throws Exception {
        Message reply = producer.request(message, command.number("timeout_ms", TIMEOUT_MS));
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("body", Messages.body(message));
        fields.put("reply", Messages.body(reply));
        fields.put("topic", reply.getTopic());
        fields.put("properties", reply.getProperties());
        command.emit("replied", fields);
    }

    /** Consumes a topic and replies to each message with its body behind "re: ". */
    static void answer(Command command) throws Exception {
        DefaultMQProducer producer = Producing.open(command);
        var consumer = new DefaultMQPushConsumer(
            command.text("group"), Options.hook(command),
            new AllocateMessageQueueAveragely());
        Options.apply(command, consumer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(command.text("topic"), "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> reply(command, producer, message));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Agent.RUNNING.put(command.id, consumer::shutdown);
    }

    private static void reply(Command command, DefaultMQProducer producer, MessageExt message) {
        String text = "re: " + Messages.body(message);
        try {
            Message reply = MessageUtil.createReplyMessage(
                message, text.getBytes(StandardCharsets.UTF_8));
            var fields = Messages.describe(producer.send(reply));
            fields.put("body", text);
            command.emit("sent", fields);
        } catch (Exception error) {
            var fields = new LinkedHashMap<>(Messages.describe(error));
            fields.put("body", text);
            command.emit("failed", fields);
        }
    }
}
