// The `consume`, `go` and `end` commands: push consumers that share a topic's queues.

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.LongAdder;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

final class Consumers {
    private static final int THREADS = 32;
    private static final int THRESHOLD = 1000; // the client's own default
    private static final long PATIENCE_NS = 60_000_000_000L;
    private static int instances;

    private final List<DefaultMQPushConsumer> running = new ArrayList<>();
    private final Map<DefaultMQPushConsumer, Integer> shares = new ConcurrentHashMap<>();
    private final LongAdder received = new LongAdder();
    private CountDownLatch gate;

    void start(String nameServer, String topic, String group, int clients, int queues)
        throws Exception {
        received.reset();
        gate = new CountDownLatch(1);
        var opened = gate;
        for (int index = 0; index < clients; index++) {
            var consumer = new DefaultMQPushConsumer(group);
            consumer.setNamesrvAddr(nameServer);
            consumer.setInstanceName("consumer-" + instances++);
            consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            consumer.setConsumeThreadMin(Math.max(1, THREADS / clients));
            consumer.setConsumeThreadMax(Math.max(1, THREADS / clients));
            // While nothing is consumed, one pull a queue is all that is cached.
            consumer.setPullThresholdForQueue(1);
            consumer.subscribe(topic, "*");
            // A consumer also has its share of the group's retry topic, which is not meant.
            consumer.setMessageQueueListener((changed, all, share) -> {
                if (changed.equals(topic)) shares.put(consumer, share.size());
            });
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                try {
                    opened.await();
                } catch (InterruptedException error) {
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
                received.add(messages.size());
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
            consumer.start();
            running.add(consumer);
        }
        waitUntil(
            () -> running.stream().allMatch(
                one -> shares.getOrDefault(one, 0) == queues / clients),
            "each consumer has its queues");
        // A consumer whose share has changed says so by a heartbeat before it tells us,
        // but gives up where another heartbeat is under way; its pulls are then refused
        // for half a minute.
        for (var one : running) {
            var client = one.getDefaultMQPushConsumerImpl().getmQClientFactory();
            waitUntil(client::sendHeartbeatToAllBrokerWithLock, "a heartbeat is sent");
        }
        Load.say("{\"event\":\"ready\"}");
    }

    void go(int count) throws Exception {
        long cached = running.stream()
            .flatMap(one -> one.getDefaultMQPushConsumerImpl().getRebalanceImpl()
                .getProcessQueueTable().values().stream())
            .mapToLong(queue -> queue.getMsgCount().get())
            .sum();
        Load.say("{\"event\":\"began\"}");
        long began = System.nanoTime();
        running.forEach(one -> one.setPullThresholdForQueue(THRESHOLD));
        gate.countDown();
        waitUntil(() -> received.sum() >= count, count + " messages come");
        double seconds = (System.nanoTime() - began) / 1e9;
        Load.say(
            "{\"event\":\"ended\",\"messages\":%d,\"requests\":0,\"errors\":0,"
                + "\"seconds\":%.6f}",
            count - cached, seconds);
    }

    void end() {
        running.parallelStream().forEach(DefaultMQPushConsumer::shutdown);
        running.clear();
        shares.clear();
        Load.say("{\"event\":\"stopped\"}");
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
