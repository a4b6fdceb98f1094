// The `consume`, `go` and `end` commands: push consumers that share a topic's queues.

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

final class Consumers {
    private static final int THREADS = 32;
    private static final long PATIENCE_NS = 60_000_000_000L;
    private static int instances;

    private final List<DefaultMQPushConsumer> running = new ArrayList<>();
    private final LongAdder received = new LongAdder();

    void start(String nameServer, String topic, String group, int clients, int queues)
        throws Exception {
        received.reset();
        for (int index = 0; index < clients; index++) {
            var consumer = new DefaultMQPushConsumer(group);
            consumer.setNamesrvAddr(nameServer);
            consumer.setInstanceName("consumer-" + instances++);
            consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            consumer.setConsumeThreadMin(Math.max(1, THREADS / clients));
            consumer.setConsumeThreadMax(Math.max(1, THREADS / clients));
            consumer.subscribe(topic, "*");
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                received.add(messages.size());
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
            consumer.start();
            running.add(consumer);
        }
        waitUntil(() -> shared(queues), "each consumer has its queues");
        running.forEach(DefaultMQPushConsumer::suspend);
        Load.say("{\"event\":\"ready\"}");
    }

    void go(int count) throws Exception {
        long before = received.sum();
        running.forEach(DefaultMQPushConsumer::resume);
        // A consumer that was suspended looks again after a second at most.
        waitUntil(() -> received.sum() > before, "the first message comes");
        long first = received.sum();
        long began = System.nanoTime();
        Load.say("{\"event\":\"began\"}");
        waitUntil(() -> received.sum() >= count, count + " messages come");
        double seconds = (System.nanoTime() - began) / 1e9;
        Load.say(
            "{\"event\":\"ended\",\"messages\":%d,\"requests\":0,\"errors\":0,"
                + "\"seconds\":%.6f}",
            received.sum() - first, seconds);
    }

    void end() {
        running.parallelStream().forEach(DefaultMQPushConsumer::shutdown);
        running.clear();
        Load.say("{\"event\":\"stopped\"}");
    }

    private boolean shared(int queues) {
        var shares = running.stream()
            .mapToInt(one -> one.getDefaultMQPushConsumerImpl().getRebalanceImpl()
                .getProcessQueueTable().size())
            .toArray();
        int sum = 0;
        for (int share : shares) {
            if (share != queues / running.size()) {
                return false;
            }
            sum += share;
        }
        return sum == queues;
    }

    private interface Condition {
        boolean holds();
    }

    private static void waitUntil(Condition condition, String what) throws Exception {
        for (long began = System.nanoTime(); !condition.holds(); Thread.sleep(1)) {
            if (System.nanoTime() - began > PATIENCE_NS) {
                throw new IllegalStateException("waited in vain until " + what);
            }
        }
    }
}
