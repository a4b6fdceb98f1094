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
        waitUntil(() -> shared(topic, queues), "each consumer has its queues");
        // A consumer whose share has changed says so by a heartbeat, but gives up where
        // another heartbeat is under way; its pulls are then refused for half a minute.
        for (var one : running) {
            var client = one.getDefaultMQPushConsumerImpl().getmQClientFactory();
            waitUntil(client::sendHeartbeatToAllBrokerWithLock, "a heartbeat is sent");
        }
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

    // A consumer also has its share of the group's retry topic, which is not meant.
    private boolean shared(String topic, int queues) {
        return running.stream().allMatch(
            one -> one.getDefaultMQPushConsumerImpl().getRebalanceImpl()
                .getProcessQueueTable().keySet().stream()
                .filter(queue -> queue.getTopic().equals(topic))
                .count() == queues / running.size());
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
