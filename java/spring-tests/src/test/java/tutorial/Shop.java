package tutorial;

import org.apache.rocketmq.spring.core.RocketMQTemplate;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.stereotype.Service;

@SpringBootApplication
public class Shop {
    public static void main(String[] arguments) {
        SpringApplication.run(Shop.class, arguments);
    }

    @Service
    public static class Orders {
        private final RocketMQTemplate template;

        Orders(RocketMQTemplate template) {
            this.template = template;
        }

        /** Place an order; the id of its message. */
        public String place(String item) {
            return template.syncSend("orders:paid", item).getMsgId();
        }
    }
}
