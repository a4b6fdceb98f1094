// The `produce` command: sends a list of messages in one of the client's ways.

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;

final class Producing {
    private static final Map<String, DefaultMQProducer> OPEN = new ConcurrentHashMap<>();
    private static final long RETRY_PAUSE_MS = 200;

    private Producing() { }

    /** The producer for a command; commands with the same settings share one. */
    static synchronized DefaultMQProducer open(Command command) throws MQClientException {
        String namesrv = command.text("namesrv");
        String group = command.text("producer_group", "agent-producer");
        int retries = (int) command.number("retries", 2);
        int limit = (int) command.number("max_message_bytes", 4 << 20);
        String key = String.join(
            "|", namesrv, group, "" + retries, "" + limit, Options.describe(command));
        DefaultMQProducer known = OPEN.get(key);
        if (known != null) {
            return known;
        }
        var producer = new DefaultMQProducer(
            group, Options.hook(command), command.flag("trace"),
            Options.traceTopic(command));
        Options.apply(command, producer);
        producer.setSendMsgTimeout((int) command.number("timeout_ms", 10_000));
        producer.setRetryTimesWhenSendFailed(retries);
        producer.setMaxMessageSize(limit);
        producer.start();
        OPEN.put(key, producer);
        return producer;
    }

    static void produce(Command command) throws Exception {
        DefaultMQProducer producer = open(command);
        String topic = command.text("topic");
        List<Command> wanted = command.list("messages");
        switch (command.text("mode", "sync")) {
            case "batch" -> batch(command, producer, topic, wanted);
            case "async" -> async(command, producer, topic, wanted);
            case "oneway" -> {
                for (Command one : wanted) {
                    producer.sendOneway(Messages.build(topic, one));
                }
            }
            case "ordered" -> oneByOne(command, wanted, topic, (message, one) ->
                producer.send(message, (queues, ignored, shard) ->
                    queues.get((int) ((long) shard % queues.size())),
                    one.number("shard", 0)));
            default -> oneByOne(command, wanted, topic,
                (message, one) -> producer.send(message));
        }
    }

    private interface Sending {
        SendResult send(Message message, Command wanted) throws Exception;
    }

    private static void oneByOne(
            Command command, List<Command> wanted, String topic, Sending sending)
            throws InterruptedException {
        for (Command one : wanted) {
            Message message = Messages.build(topic, one);
            long giveUp = System.currentTimeMillis() + command.number("retry_for_ms", 0);
            while (true) {
                try {
                    sent(command, message, sending.send(message, one));
                    break;
                } catch (Exception error) {
                    if (System.currentTimeMillis() >= giveUp) {
                        failed(command, message, error);
                        break;
                    }
                    retried(command, message, error);
                    Thread.sleep(RETRY_PAUSE_MS);
                }
            }
            Thread.sleep(command.number("pause_ms", 0));
        }
    }

    private static void batch(
            Command command, DefaultMQProducer producer, String topic, List<Command> wanted) {
        List<Message> messages = new ArrayList<>();
        wanted.forEach(one -> messages.add(Messages.build(topic, one)));
        try {
            var fields = Messages.describe(producer.send(messages));
            fields.put("bodies", messages.stream().map(Messages::body).toList());
            command.emit("sent", fields);
        } catch (Exception error) {
            failed(command, messages.get(0), error);
        }
    }

    private static void async(
            Command command, DefaultMQProducer producer, String topic, List<Command> wanted)
            throws Exception {
        var open = new CountDownLatch(wanted.size());
        for (Command one : wanted) {
            Message message = Messages.build(topic, one);
            producer.send(message, new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    sent(command, message, result);
                    open.countDown();
                }

                @Override
                public void onException(Throwable error) {
                    failed(command, message, error);
                    open.countDown();
                }
            });
        }
        open.await();
    }

    private static void sent(Command command, Message message, SendResult result) {
        var fields = Messages.describe(result);
        fields.put("body", Messages.body(message));
        command.emit("sent", fields);
    }

    private static void failed(Command command, Message message, Throwable error) {
        unsent("failed", command, message, error);
    }

    private static void retried(Command command, Message message, Throwable error) {
        unsent("retried", command, message, error);
    }

    private static void unsent(
            String event, Command command, Message message, Throwable error) {
        Map<String, Object> fields = new LinkedHashMap<>(Messages.describe(error));
        fields.put("body", Messages.body(message));
        command.emit(event, fields);
    }
}
