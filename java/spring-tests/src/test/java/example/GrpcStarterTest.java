package example;

import static org.assertj.core.api.Assertions.assertThat;

import io.ropeway.junit.RopewayExtension;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.rocketmq.client.annotation.RocketMQMessageListener;
import org.apache.rocketmq.client.annotation.RocketMQTransactionListener;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.SendReceipt;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;
import org.apache.rocketmq.client.common.Pair;
import org.apache.rocketmq.client.core.RocketMQClientTemplate;
import org.apache.rocketmq.client.core.RocketMQListener;
import org.apache.rocketmq.client.core.RocketMQTransactionChecker;
import org.apache.rocketmq.spring.autoconfigure.RocketMQAutoConfiguration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.messaging.support.MessageBuilder;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;

/** org.apache.rocketmq:rocketmq-v5-client-spring-boot-starter, which speaks gRPC with TLS. */
@SpringBootTest(
        classes = GrpcStarterTest.Application.class,
        properties = {
            "rocketmq.producer.topic=payments",
            "rocketmq.producer.request-timeout=60",
            "rocketmq.simple-consumer.topic=pulled",
            "rocketmq.simple-consumer.tag=*",
            "rocketmq.simple-consumer.consumer-group=pulling",
            "rocketmq.simple-consumer.request-timeout=60",
        })
@DirtiesContext
class GrpcStarterTest {
    @RegisterExtension
    static RopewayExtension ropeway =
            RopewayExtension.builder()
                    .grpc()
                    .topic("orders")
                    .topic("pulled")
                    .options("--config", "src/test/resources/ropeway.toml")
                    .build();

    @Autowired RocketMQClientTemplate template;
    @Autowired Orders orders;
    @Autowired Steps steps;
    @Autowired Reminders reminders;
    @Autowired Payments payments;

    @DynamicPropertySource
    static void settings(DynamicPropertyRegistry registry) {
        create("steps", "FIFO");
        create("reminders", "DELAY");
        create("payments", "TRANSACTION");
        ropeway.gateway().run("group", "create", "followers", "--in-order");
        registry.add("rocketmq.producer.endpoints", ropeway::endpoints);
        registry.add("rocketmq.simple-consumer.endpoints", ropeway::endpoints);
        registry.add("rocketmq.push-consumer.endpoints", ropeway::endpoints);
    }

    private static void create(String topic, String type) {
        ropeway.gateway().run("topic", "create", topic, "--attribute=message.type=" + type);
    }

    @Test
    void syncSendNormalMessage() throws InterruptedException {
        template.syncSendNormalMessage("orders", "one coffee");
        assertThat(orders.inbox.take()).isEqualTo("one coffee");
    }

    @Test
    void asyncSendNormalMessage() throws Exception {
        template.asyncSendNormalMessage("orders", "two coffees", new CompletableFuture<>())
                .get(60, TimeUnit.SECONDS);
        assertThat(orders.inbox.take()).isEqualTo("two coffees");
    }

    @Test
    void syncSendFifoMessage() throws InterruptedException {
        List<String> bodies = IntStream.range(0, 10).mapToObj(number -> "step " + number).toList();
        bodies.forEach(step -> template.syncSendFifoMessage("steps", step, "order-1"));
        assertThat(steps.inbox.take(10)).isEqualTo(bodies);
    }

    @Test
    void syncSendDelayMessage() throws InterruptedException {
        long begin = System.currentTimeMillis();
        template.syncSendDelayMessage("reminders", "later", Duration.ofSeconds(1));
        assertThat(reminders.inbox.take()).isEqualTo("later");
        assertThat(System.currentTimeMillis() - begin).isGreaterThanOrEqualTo(1000);
    }

    @Test
    void sendMessageInTransaction() throws Exception {
        transaction("ROLLBACK").rollback();
        transaction("COMMIT").commit();
        assertThat(payments.inbox.take()).isEqualTo("COMMIT");
        transaction("UNKNOWN");
        assertThat(payments.inbox.take()).isEqualTo("UNKNOWN");
    }

    private Transaction transaction(String body) throws Exception {
        Pair<SendReceipt, Transaction> sent =
                template.sendMessageInTransaction("payments", body);
        return sent.getTransaction();
    }

    @Test
    void receiveAndAck() throws Exception {
        template.send("pulled", MessageBuilder.withPayload("taken").build());
        List<MessageView> received = List.of();
        while (received.isEmpty()) {
            received = template.receive(1, Duration.ofSeconds(60));
        }
        assertThat(body(received.get(0))).isEqualTo("taken");
        template.ack(received.get(0));
    }

    static String body(MessageView message) {
        return StandardCharsets.UTF_8.decode(message.getBody()).toString();
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration(exclude = RocketMQAutoConfiguration.class)
    @Import({Orders.class, Steps.class, Reminders.class, Payments.class, Checker.class})
    static class Application {}

    /** Keeps what comes. */
    abstract static class Keeping implements RocketMQListener {
        final Inbox inbox = new Inbox();

        @Override
        public ConsumeResult consume(MessageView message) {
            inbox.put(body(message));
            return ConsumeResult.SUCCESS;
        }
    }

    @RocketMQMessageListener(
            topic = "orders",
            tag = "*",
            consumerGroup = "kitchen",
            requestTimeout = 60)
    static class Orders extends Keeping {}

    @RocketMQMessageListener(
            topic = "steps",
            tag = "*",
            consumerGroup = "followers",
            requestTimeout = 60)
    static class Steps extends Keeping {}

    @RocketMQMessageListener(
            topic = "reminders",
            tag = "*",
            consumerGroup = "reminded",
            requestTimeout = 60)
    static class Reminders extends Keeping {}

    @RocketMQMessageListener(
            topic = "payments",
            tag = "*",
            consumerGroup = "bank",
            requestTimeout = 60)
    static class Payments extends Keeping {}

    @RocketMQTransactionListener
    static class Checker implements RocketMQTransactionChecker {
        @Override
        public TransactionResolution check(MessageView message) {
            return TransactionResolution.COMMIT;
        }
    }
}
