// The `poll` command: a lite pull consumer, polled until it is stopped.

import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

@SuppressWarnings("deprecation")
final class Polling {
    private static final long POLL_MS = 500;

    private Polling() { }

    static void start(Command command) throws Exception {
        var consumer = new DefaultLitePullConsumer(command.text("group"));
        Options.apply(command, consumer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.valueOf(
            "CONSUME_FROM_" + command.text("from", "FIRST_OFFSET")));
        consumer.subscribe(command.text("topic"), Options.selector(command));
        consumer.start();
        var open = new AtomicBoolean(true);
        var poller = new Thread(() -> {
            while (open.get()) {
                consumer.poll(POLL_MS).forEach(message ->
                    command.emit("received", Messages.describe(message)));
            }
        }, "poll-" + command.id);
        poller.start();
        Agent.RUNNING.put(command.id, () -> {
            open.set(false);
            poller.join();
            consumer.commitSync();
            consumer.shutdown();
        });
    }
}
