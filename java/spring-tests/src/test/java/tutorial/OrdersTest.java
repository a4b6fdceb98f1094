package tutorial;

import static org.assertj.core.api.Assertions.assertThat;

import io.ropeway.junit.RopewayExtension;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;

@SpringBootTest(
        classes = Shop.class,
        properties = {"rocketmq.producer.group=shop"})
@DirtiesContext
class OrdersTest {
    @RegisterExtension
    static RopewayExtension ropeway = RopewayExtension.builder().topic("orders").build();

    @Autowired Shop.Orders orders;
    @Autowired Kitchen kitchen;

    @DynamicPropertySource
    static void settings(DynamicPropertyRegistry registry) {
        registry.add("rocketmq.name-server", ropeway::nameServer);
    }

    @Test
    void anOrderThatIsPlacedIsCooked() throws InterruptedException {
        assertThat(orders.place("one coffee")).isNotEmpty();
        assertThat(kitchen.cooked.poll(60, TimeUnit.SECONDS)).isEqualTo("one coffee");
    }
}
