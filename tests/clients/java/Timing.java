// Messages with a delivery time: what the client has since version 5, found by name.

import java.lang.reflect.InvocationTargetException;
import java.util.Map;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;

final class Timing {
    private static final Map<String, String> SETTERS = Map.of(
        "deliver_ms", "setDeliverTimeMs",
        "delay_ms", "setDelayTimeMs",
        "delay_sec", "setDelayTimeSec");

    private Timing() { }

    static void apply(Command wanted, Message message) {
        SETTERS.forEach((key, setter) -> {
            if (wanted.has(key)) {
                invoke(message, setter, new Class<?>[] {long.class}, wanted.number(key, 0));
            }
        });
    }

    /** Null where the message is not to wait, or the client knows no such thing. */
    static Object recallHandle(SendResult result) {
        try {
            return SendResult.class.getMethod("getRecallHandle").invoke(result);
        } catch (ReflectiveOperationException older) {
            return null;
        }
    }

    static void recall(Command command) throws Exception {
        var producer = Producing.open(command);
        try {
            var id = producer.getClass()
                .getMethod("recallMessage", String.class, String.class)
                .invoke(producer, command.text("topic"), command.text("handle"));
            command.emit("recalled", Map.of("msg_id", String.valueOf(id)));
        } catch (InvocationTargetException error) {
            throw (Exception) error.getCause();
        }
    }

    private static void invoke(
            Object target, String method, Class<?>[] types, Object... arguments) {
        try {
            target.getClass().getMethod(method, types).invoke(target, arguments);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }
}
