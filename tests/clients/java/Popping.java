// Push consumers that pop: what only clients of version 5 have, found by name.

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;

final class Popping {
    private Popping() { }

    /** Has the broker share queues out and, where it says so, hand messages out. */
    static void apply(Command command, DefaultMQPushConsumer consumer) throws Exception {
        if (command.flag("pop")) {
            set(consumer, "setClientRebalance", boolean.class, false);
        }
        if (command.has("invisible_ms")) {
            set(consumer, "setPopInvisibleTime", long.class,
                command.number("invisible_ms", 0));
        }
    }

    private static void set(
            DefaultMQPushConsumer consumer, String method, Class<?> type, Object value)
            throws Exception {
        consumer.getClass().getMethod(method, type).invoke(consumer, value);
    }
}
