package tutorial;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.rocketmq.spring.annotation.RocketMQMessageListener;
import org.apache.rocketmq.spring.core.RocketMQListener;
import org.springframework.stereotype.Component;

@Component
@RocketMQMessageListener(topic = "orders", consumerGroup = "kitchen", selectorExpression = "paid")
public class Kitchen implements RocketMQListener<String> {
    public final BlockingQueue<String> cooked = new LinkedBlockingQueue<>();

    @Override
    public void onMessage(String item) {
        // What throws here is delivered again, up to 16 times.
        cooked.add(item);
    }
}
