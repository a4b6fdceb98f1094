package example;

import static org.assertj.core.api.Assertions.assertThat;

import io.ropeway.junit.RopewayExtension;
import java.util.function.Consumer;
import java.util.function.Function;
import org.apache.rocketmq.client.autoconfigure.RocketMQAutoConfiguration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.cloud.stream.function.StreamBridge;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;

/** com.alibaba.cloud:spring-cloud-starter-stream-rocketmq. */
@SpringBootTest(
        classes = StreamBinderTest.Application.class,
        properties = {
            "spring.cloud.function.definition=upper;keep",
            "spring.cloud.stream.bindings.upper-in-0.destination=orders",
            "spring.cloud.stream.bindings.upper-in-0.group=kitchen",
            "spring.cloud.stream.bindings.upper-out-0.destination=cooked",
            "spring.cloud.stream.bindings.keep-in-0.destination=cooked",
            "spring.cloud.stream.bindings.keep-in-0.group=guests",
            "spring.cloud.stream.rocketmq.bindings.upper-out-0.producer.group=kitchen-out",
            "spring.cloud.stream.rocketmq.default.producer.group=shop",
            "spring.cloud.stream.rocketmq.default.producer.send-msg-timeout=60000",
        })
@DirtiesContext
class StreamBinderTest {
    @RegisterExtension
    static RopewayExtension ropeway =
            RopewayExtension.builder().topic("orders").topic("cooked").build();

    @Autowired StreamBridge bridge;
    @Autowired Inbox inbox;

    @DynamicPropertySource
    static void settings(DynamicPropertyRegistry registry) {
        registry.add("spring.cloud.stream.rocketmq.binder.name-server", ropeway::nameServer);
    }

    @Test
    void aFunctionBetweenTwoTopics() throws InterruptedException {
        bridge.send("orders", "one coffee");
        assertThat(inbox.take()).isEqualTo("ONE COFFEE");
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration(
            exclude = {
                RocketMQAutoConfiguration.class,
                org.apache.rocketmq.spring.autoconfigure.RocketMQAutoConfiguration.class
            })
    static class Application {
        @Bean
        Inbox inbox() {
            return new Inbox();
        }

        @Bean
        Function<String, String> upper() {
            return String::toUpperCase;
        }

        @Bean
        Consumer<String> keep(Inbox inbox) {
            return inbox::put;
        }
    }
}
