package example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.ropeway.junit.RopewayContainer;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class ContainerTest {
    static RopewayContainer ropeway = new RopewayContainer("ropeway").withTopic("orders");

    @BeforeAll
    static void start() {
        ropeway.start();
    }

    @AfterAll
    static void stop() {
        ropeway.stop();
    }

    @Test
    void anOrderThatIsSentIsReceived() throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("billing");
        producer.setNamesrvAddr(ropeway.nameServer());
        // On a busy machine.
        producer.setMqClientApiTimeout(60_000);
        producer.setSendMsgTimeout(60_000);
        producer.start();
        producer.send(new Message("orders", "paid", "one coffee".getBytes()));
        producer.shutdown();

        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer("kitchen");
        consumer.setNamesrvAddr(ropeway.nameServer());
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("orders", "*");
        consumer.start();
        List<MessageExt> received = consumer.poll(60_000);
        consumer.shutdown();
        assertEquals("one coffee", new String(received.get(0).getBody()));
    }
}
