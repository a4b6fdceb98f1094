package example;

import static org.assertj.core.api.Assertions.assertThat;

import io.ropeway.junit.RopewayExtension;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.spring.annotation.ConsumeMode;
import org.apache.rocketmq.spring.annotation.RocketMQMessageListener;
import org.apache.rocketmq.spring.annotation.RocketMQTransactionListener;
import org.apache.rocketmq.spring.core.RocketMQListener;
import org.apache.rocketmq.spring.core.RocketMQLocalRequestCallback;
import org.apache.rocketmq.spring.core.RocketMQLocalTransactionListener;
import org.apache.rocketmq.spring.core.RocketMQLocalTransactionState;
import org.apache.rocketmq.spring.core.RocketMQReplyListener;
import org.apache.rocketmq.spring.core.RocketMQTemplate;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.messaging.Message;
import org.springframework.messaging.support.MessageBuilder;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;

/** org.apache.rocketmq:rocketmq-spring-boot-starter. */
@SpringBootTest(
        classes = StarterTest.Application.class,
        properties = {
            "rocketmq.producer.group=shop",
            "rocketmq.producer.send-message-timeout=60000"
        })
@DirtiesContext
class StarterTest {
    @RegisterExtension
    static RopewayExtension ropeway =
            RopewayExtension.builder()
                    .topic("orders")
                    .topic("steps", 4)
                    .topic("payments")
                    .topic("refused")
                    .topic("questions")
                    .options("--config", "src/test/resources/ropeway.toml")
                    .build();

    @Autowired RocketMQTemplate template;
    @Autowired Orders orders;
    @Autowired Steps steps;
    @Autowired Payments payments;
    @Autowired Refused refused;

    @DynamicPropertySource
    static void settings(DynamicPropertyRegistry registry) {
        registry.add("rocketmq.name-server", ropeway::nameServer);
    }

    @Test
    void syncSend() throws InterruptedException {
        SendResult sent = template.syncSend("orders:paid", "one coffee");
        assertThat(sent.getSendStatus()).isEqualTo(SendStatus.SEND_OK);
        assertThat(orders.inbox.take()).isEqualTo("one coffee");
    }

    @Test
    void asyncSend() throws Exception {
        CompletableFuture<SendResult> sent = new CompletableFuture<>();
        template.asyncSend(
                "orders:paid",
                "two coffees",
                new SendCallback() {
                    @Override
                    public void onSuccess(SendResult result) {
                        sent.complete(result);
                    }

                    @Override
                    public void onException(Throwable error) {
                        sent.completeExceptionally(error);
                    }
                });
        assertThat(sent.get(60, TimeUnit.SECONDS).getSendStatus()).isEqualTo(SendStatus.SEND_OK);
        assertThat(orders.inbox.take()).isEqualTo("two coffees");
    }

    @Test
    void sendOneWay() throws InterruptedException {
        template.sendOneWay("orders:paid", "a tea");
        assertThat(orders.inbox.take()).isEqualTo("a tea");
    }

    @Test
    void syncSendOfABatch() throws InterruptedException {
        template.syncSend("orders:paid", Stream.of("a", "b").map(StarterTest::message).toList());
        assertThat(orders.inbox.take(2)).containsExactlyInAnyOrder("a", "b");
    }

    @Test
    void listenerByTag() throws InterruptedException {
        template.syncSend("orders:open", "not for this listener");
        template.syncSend("orders:paid", "for this listener");
        assertThat(orders.inbox.take()).isEqualTo("for this listener");
    }

    @Test
    void syncSendOrderlyToAnOrderlyListener() throws InterruptedException {
        List<String> bodies = IntStream.range(0, 20).mapToObj(number -> "step " + number).toList();
        bodies.forEach(step -> template.syncSendOrderly("steps", step, "order-1"));
        assertThat(steps.inbox.take(20)).isEqualTo(bodies);
    }

    @Test
    void delayLevelAndDelayTime() throws InterruptedException {
        long begin = System.currentTimeMillis();
        template.syncSend("orders:paid", message("level"), 60_000, 1);
        assertThat(orders.inbox.take()).isEqualTo("level");
        template.syncSendDelayTimeMills("orders:paid", "time", 1000);
        assertThat(orders.inbox.take()).isEqualTo("time");
        assertThat(System.currentTimeMillis() - begin).isGreaterThanOrEqualTo(2000);
    }

    @Test
    void aListenerThatThrowsGetsTheMessageAgain() throws InterruptedException {
        template.syncSend("refused", "twice");
        assertThat(refused.inbox.take(2)).containsExactly("twice", "twice");
    }

    @Test
    void sendMessageInTransaction() throws InterruptedException {
        for (String outcome : List.of("ROLLBACK", "COMMIT", "UNKNOWN")) {
            template.sendMessageInTransaction("payments", message(outcome), null);
        }
        // The last one's producer is asked.
        assertThat(payments.inbox.take(2)).containsExactly("COMMIT", "UNKNOWN");
    }

    @Test
    void sendAndReceive() throws InterruptedException {
        Inbox replies = new Inbox();
        // Without a callback, clients 5.3.1 and 5.3.2 wait for the send alone, and not for the
        // reply (apache/rocketmq#9319); with one, they call it after both.
        template.sendAndReceive(
                "questions",
                "who?",
                new RocketMQLocalRequestCallback<String>() {
                    @Override
                    public void onSuccess(String reply) {
                        if (reply != null) {
                            replies.put(reply);
                        }
                    }

                    @Override
                    public void onException(Throwable error) {
                        replies.put(error.toString());
                    }
                },
                60_000);
        assertThat(replies.take()).isEqualTo("re: who?");
    }

    private static Message<String> message(String body) {
        return MessageBuilder.withPayload(body).build();
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration(
            exclude = org.apache.rocketmq.client.autoconfigure.RocketMQAutoConfiguration.class)
    @Import({
        Orders.class,
        Steps.class,
        Payments.class,
        Refused.class,
        Answers.class,
        Transactions.class
    })
    static class Application {}

    /** Keeps what comes. */
    abstract static class Keeping implements RocketMQListener<String> {
        final Inbox inbox = new Inbox();

        @Override
        public void onMessage(String body) {
            inbox.put(body);
        }
    }

    @RocketMQMessageListener(
            topic = "orders",
            consumerGroup = "kitchen",
            selectorExpression = "paid")
    static class Orders extends Keeping {}

    @RocketMQMessageListener(
            topic = "steps",
            consumerGroup = "followers",
            consumeMode = ConsumeMode.ORDERLY)
    static class Steps extends Keeping {}

    @RocketMQMessageListener(topic = "payments", consumerGroup = "bank")
    static class Payments extends Keeping {}

    @RocketMQMessageListener(
            topic = "refused",
            consumerGroup = "refusing",
            delayLevelWhenNextConsume = 1)
    static class Refused extends Keeping {
        private volatile boolean refused;

        @Override
        public void onMessage(String body) {
            super.onMessage(body);
            if (!refused) {
                refused = true;
                throw new IllegalStateException("not yet");
            }
        }
    }

    @RocketMQMessageListener(topic = "questions", consumerGroup = "oracle")
    static class Answers implements RocketMQReplyListener<String, String> {
        @Override
        public String onMessage(String body) {
            return "re: " + body;
        }
    }

    @RocketMQTransactionListener
    static class Transactions implements RocketMQLocalTransactionListener {
        @Override
        public RocketMQLocalTransactionState executeLocalTransaction(
                Message message, Object argument) {
            return RocketMQLocalTransactionState.valueOf(
                    new String((byte[]) message.getPayload()));
        }

        @Override
        public RocketMQLocalTransactionState checkLocalTransaction(Message message) {
            return RocketMQLocalTransactionState.COMMIT;
        }
    }
}
