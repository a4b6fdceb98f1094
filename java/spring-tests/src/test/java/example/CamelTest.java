package example;

import static org.apache.camel.component.rocketmq.RocketMQConstants.KEY;
import static org.apache.camel.component.rocketmq.RocketMQConstants.OVERRIDE_MESSAGE_KEY;
import static org.assertj.core.api.Assertions.assertThat;

import io.ropeway.junit.RopewayExtension;
import org.apache.camel.ProducerTemplate;
import org.apache.camel.builder.RouteBuilder;
import org.apache.rocketmq.client.autoconfigure.RocketMQAutoConfiguration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;

/** org.apache.camel.springboot:camel-rocketmq-starter. */
@SpringBootTest(
        classes = CamelTest.Application.class,
        properties = {
            "camel.component.rocketmq.producer-group=shop",
            "camel.component.rocketmq.wait-for-send-result=true",
        })
@DirtiesContext
class CamelTest {
    @RegisterExtension
    static RopewayExtension ropeway =
            RopewayExtension.builder().topic("orders").topic("questions").topic("replies").build();

    @Autowired ProducerTemplate template;
    @Autowired Inbox inbox;

    @DynamicPropertySource
    static void settings(DynamicPropertyRegistry registry) {
        registry.add("camel.component.rocketmq.namesrv-addr", ropeway::nameServer);
    }

    @Test
    void aRouteFromATopic() throws InterruptedException {
        template.sendBody("rocketmq:orders?sendTag=paid", "one coffee");
        assertThat(inbox.take()).isEqualTo("one coffee");
    }

    @Test
    void requestAndReply() {
        String reply =
                template.requestBody(
                        "rocketmq:questions?replyToTopic=replies&replyToConsumerGroup=asking"
                                + "&requestTimeoutMillis=60000",
                        "who?",
                        String.class);
        assertThat(reply).isEqualTo("re: who?");
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
        RouteBuilder routes(Inbox inbox) {
            return new RouteBuilder() {
                @Override
                public void configure() {
                    from("rocketmq:orders?consumerGroup=kitchen&subscribeTags=paid")
                            .process(
                                    exchange ->
                                            inbox.put(
                                                    exchange.getMessage().getBody(String.class)));
                    from("rocketmq:questions?consumerGroup=oracle")
                            .transform(body().prepend("re: "))
                            .setHeader(OVERRIDE_MESSAGE_KEY, header(KEY))
                            .to("rocketmq:replies");
                }
            };
        }
    }
}
