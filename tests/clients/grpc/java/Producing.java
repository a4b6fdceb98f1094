// The produce, transact and recall commands.

import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.rocketmq.client.apis.ClientException;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.SendReceipt;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;

final class Producing {
    private static final int RETRY_PAUSE_MS = 200;
    private static final Map<String, TransactionResolution> RESOLUTIONS = Map.of(
        "commit", TransactionResolution.COMMIT,
        "rollback", TransactionResolution.ROLLBACK);

    private Producing() { }

    static void produce(Command command) throws Exception {
        try (Producer producer = Messages.CLIENTS.newProducerBuilder()
                .setClientConfiguration(command.configuration())
                .setTopics(command.text("topic"))
                .build()) {
            for (Command one : command.list("messages")) {
                sent(command, one, send(command, one, producer));
                Thread.sleep(command.number("pause_ms", 0));
            }
        }
    }

    /** Sends numbers one after the other until it is stopped. */
    static void keepSending(Command command) throws Exception {
        Agent.RUNNING.put(command.id, () -> { });
        try (Producer producer = Messages.CLIENTS.newProducerBuilder()
                .setClientConfiguration(command.configuration())
                .setTopics(command.text("topic"))
                .build()) {
            for (int number = 0; Agent.RUNNING.containsKey(command.id);) {
                var one = command.numbered(number);
                try {
                    sent(command, one, producer.send(
                        Messages.build(command.text("topic"), one)));
                    number++;
                } catch (ClientException | RuntimeException error) {
                    command.emit("missed", Messages.describe(error));
                }
                Thread.sleep(command.number("pause_ms", 0));
            }
        }
    }

    /** Sends, and again for {@code retry_for_ms} where the client has given up. */
    private static SendReceipt send(Command command, Command one, Producer producer)
            throws Exception {
        long until = System.currentTimeMillis() + command.number("retry_for_ms", 0);
        while (true) {
            try {
                return producer.send(Messages.build(command.text("topic"), one));
            } catch (ClientException | RuntimeException error) {
                if (System.currentTimeMillis() >= until) {
                    throw error;
                }
                Thread.sleep(RETRY_PAUSE_MS);
            }
        }
    }

    /** A producer of transactions, which answers what it is asked until it is stopped. */
    static void transact(Command command) throws Exception {
        Producer producer = Messages.CLIENTS.newProducerBuilder()
            .setClientConfiguration(command.configuration())
            .setTopics(command.text("topic"))
            .setTransactionChecker(message -> check(command, message))
            .build();
        Agent.RUNNING.put(command.id, producer);
        for (Command one : command.list("messages")) {
            Message message = Messages.build(command.text("topic"), one);
            Transaction transaction = producer.beginTransaction();
            sent(command, one, producer.send(message, transaction));
            String end = one.texts("properties").get("local");
            if ("commit".equals(end)) {
                transaction.commit();
            } else if ("rollback".equals(end)) {
                transaction.rollback();
            }
        }
    }

    private static TransactionResolution check(Command command, MessageView message) {
        command.emit("checked", Messages.describe(message));
        String answer = message.getProperties().getOrDefault("check", "");
        return RESOLUTIONS.getOrDefault(answer, TransactionResolution.UNKNOWN);
    }

    static void recall(Command command) throws Exception {
        try (Producer producer = Messages.CLIENTS.newProducerBuilder()
                .setClientConfiguration(command.configuration())
                .setTopics(command.text("topic"))
                .build()) {
            var receipt = producer.recallMessage(
                command.text("topic"), command.text("handle"));
            command.emit("recalled", Map.of("msg_id", receipt.getMessageId().toString()));
        }
    }

    private static void sent(Command command, Command one, SendReceipt receipt) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("body", one.text("body"));
        fields.put("msg_id", receipt.getMessageId().toString());
        fields.put("recall_handle", receipt.getRecallHandle());
        command.emit("sent", fields);
    }
}
