// The `consume` command: a push consumer that runs until it is stopped.

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

final class Pushing {
    private static final long SUSPEND_MS = 200;
    private static final Map<Integer, DefaultMQPushConsumer> CONSUMERS =
        new ConcurrentHashMap<>();

    private final Command command;

    private Pushing(Command command) {
        this.command = command;
    }

    static void start(Command command) throws Exception {
        var consumer = new DefaultMQPushConsumer(
            command.text("group"), Options.hook(command),
            new AllocateMessageQueueAveragely(), command.flag("trace"),
            Options.traceTopic(command));
        Options.apply(command, consumer);
        Popping.apply(command, consumer);
        consumer.setInstanceName(command.text("instance", command.instance()));
        consumer.setConsumeFromWhere(ConsumeFromWhere.valueOf(
            "CONSUME_FROM_" + command.text("from", "FIRST_OFFSET")));
        if (command.has("timestamp")) {
            consumer.setConsumeTimestamp(command.text("timestamp"));
        }
        consumer.setMaxReconsumeTimes((int) command.number("max_reconsume_times", -1));
        // So that a stop waits until what was received is also counted as consumed.
        consumer.setAwaitTerminationMillisWhenShutdown(10_000);
        consumer.setConsumeThreadMin(2);
        consumer.setConsumeThreadMax(2);
        // The enum moved to another package in 5.x: named through its value.
        var model = consumer.getMessageModel();
        if (command.flag("broadcasting")) {
            model = Enum.valueOf(model.getDeclaringClass(), "BROADCASTING");
        }
        consumer.setMessageModel(model);
        consumer.subscribe(command.text("topic"), Options.selector(command));
        var listener = new Pushing(command);
        if (command.flag("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) listener::orderly);
        } else {
            consumer.registerMessageListener(
                (MessageListenerConcurrently) listener::concurrent);
        }
        consumer.start();
        CONSUMERS.put(command.id, consumer);
        Agent.RUNNING.put(command.id, consumer::shutdown);
    }

    /** Lets a running consumer want another topic too, or other tags of one. */
    static void subscribe(Command command) throws Exception {
        CONSUMERS.get((int) command.number("target", 0))
            .subscribe(command.text("topic"), Options.selector(command));
    }

    private ConsumeConcurrentlyStatus concurrent(
            List<MessageExt> messages, ConsumeConcurrentlyContext context) {
        if (accept(messages)) {
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        }
        context.setDelayLevelWhenNextConsume((int) command.number("delay_level", 0));
        return ConsumeConcurrentlyStatus.RECONSUME_LATER;
    }

    private ConsumeOrderlyStatus orderly(
            List<MessageExt> messages, ConsumeOrderlyContext context) {
        if (accept(messages)) {
            return ConsumeOrderlyStatus.SUCCESS;
        }
        context.setSuspendCurrentQueueTimeMillis(SUSPEND_MS);
        return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
    }

    private boolean accept(List<MessageExt> messages) {
        boolean all = true;
        for (MessageExt message : messages) {
            boolean accepted = message.getReconsumeTimes() >= command.number("fail", 0);
            var fields = Messages.describe(message);
            fields.put("accepted", accepted);
            command.emit("received", fields);
            all &= accepted;
        }
        return all;
    }
}
