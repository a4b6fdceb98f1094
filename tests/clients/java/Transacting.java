// The `transact` command: a producer of transactions that runs until it is stopped.

import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Does with each message what its properties say: see ../README.md. */
final class Transacting implements TransactionListener {
    private static final int HEARTBEAT_MS = 1000;
    private static final Map<String, LocalTransactionState> STATES = Map.of(
        "commit", LocalTransactionState.COMMIT_MESSAGE,
        "rollback", LocalTransactionState.ROLLBACK_MESSAGE);

    private final Command command;

    private Transacting(Command command) {
        this.command = command;
    }

    static void start(Command command) throws Exception {
        var producer = new TransactionMQProducer(command.text("group"), Options.hook(command));
        Options.apply(command, producer);
        producer.setHeartbeatBrokerInterval(HEARTBEAT_MS);
        producer.setSendMsgTimeout((int) command.number("timeout_ms", 10_000));
        producer.setTransactionListener(new Transacting(command));
        producer.start();
        Agent.RUNNING.put(command.id, producer::shutdown);
        for (Command one : command.list("messages")) {
            Message message = Messages.build(command.text("topic"), one);
            TransactionSendResult result = producer.sendMessageInTransaction(message, null);
            Map<String, Object> fields = Messages.describe(result);
            fields.put("body", Messages.body(message));
            fields.put("transaction_id", result.getTransactionId());
            fields.put("state", result.getLocalTransactionState().name());
            command.emit("sent", fields);
        }
    }

    @Override
    public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("body", Messages.body(message));
        command.emit("executing", fields);
        String hold = message.getUserProperty("hold_ms");
        if (hold != null) {
            try {
                Thread.sleep(Long.parseLong(hold));
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }
        return state(message.getUserProperty("local"));
    }

    @Override
    public LocalTransactionState checkLocalTransaction(MessageExt message) {
        command.emit("checked", Messages.describe(message));
        return state(message.getUserProperty("check"));
    }

    private static LocalTransactionState state(String name) {
        return STATES.getOrDefault(
            String.valueOf(name), LocalTransactionState.UNKNOW);
    }
}
