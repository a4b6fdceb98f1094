// RocketMQ's own SQL92 filter on command: a line of JSON in, a line of JSON out.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.filter.SqlFilter;
import org.apache.rocketmq.filter.expression.EvaluationContext;
import org.apache.rocketmq.filter.expression.Expression;
import org.apache.rocketmq.filter.expression.MQFilterException;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * Takes {@code {"expressions": [text, ...], "properties": [text in wire form, ...]}}.
 * Answers {@code {"answers": [...]}}: for each expression {@code []} where it is refused,
 * or one word for each message: {@code true}, {@code false}, {@code null}, {@code error};
 * and {@code "taken"} before them.
 */
public final class Evaluate {
    private record Properties(Map<String, String> pairs) implements EvaluationContext {
        @Override
        public Object get(String name) {
            return pairs.get(name);
        }

        @Override
        public Map<String, Object> keyValues() {
            return new HashMap<>(pairs);
        }
    }

    private Evaluate() { }

    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            Map<?, ?> asked = RemotingSerializable.fromJson(line, HashMap.class);
            var answer = RemotingSerializable.toJson(answer(asked), false);
            System.out.write((answer + "\n").getBytes(StandardCharsets.UTF_8));
            System.out.flush();
        }
    }

    private static Map<String, Object> answer(Map<?, ?> asked) {
        List<List<String>> answers = new ArrayList<>();
        for (Object expression : (List<?>) asked.get("expressions")) {
            answers.add(answer((String) expression, (List<?>) asked.get("properties")));
        }
        return Map.of("answers", answers);
    }

    private static List<String> answer(String text, List<?> messages) {
        Expression expression;
        try {
            expression = new SqlFilter().compile(text);
        } catch (MQFilterException error) {
            return List.of();
        }
        List<String> answers = new ArrayList<>(List.of("taken"));
        for (Object properties : messages) {
            answers.add(evaluate(expression, (String) properties));
        }
        return answers;
    }

    private static String evaluate(Expression expression, String text) {
        var pairs = MessageDecoder.string2messageProperties(text);
        try {
            return String.valueOf(expression.evaluate(new Properties(pairs)));
        } catch (Exception error) {
            return "error";
        }
    }
}
