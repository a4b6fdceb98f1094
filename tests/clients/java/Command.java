// One command line: its arguments by name, and the events that answer it.

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

final class Command {
    // The client libraries print to System.out now and then; events have the
    // descriptor to themselves by line, and the harness skips other lines.
    private static final PrintStream EVENTS = new PrintStream(
        new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);

    final int id;
    private final Map<String, Object> arguments;

    Command(String line) {
        this(parse(line));
    }

    private Command(Map<String, Object> arguments) {
        this.arguments = arguments;
        this.id = (int) number("id", 0);
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> parse(String line) {
        return RemotingSerializable.fromJson(line, HashMap.class);
    }

    String text(String key) {
        return String.valueOf(arguments.get(key));
    }

    String text(String key, String otherwise) {
        return arguments.containsKey(key) ? text(key) : otherwise;
    }

    long number(String key, long otherwise) {
        return arguments.containsKey(key)
            ? ((Number) arguments.get(key)).longValue() : otherwise;
    }

    boolean flag(String key) {
        return Boolean.TRUE.equals(arguments.get(key));
    }

    boolean has(String key) {
        return arguments.containsKey(key);
    }

    /** The objects of a list, each readable like a command. */
    @SuppressWarnings("unchecked")
    List<Command> list(String key) {
        return ((List<Map<String, Object>>) arguments.get(key)).stream()
            .map(Command::new).toList();
    }

    /** The entries of an object as text. */
    Map<String, String> texts(String key) {
        Map<String, String> texts = new LinkedHashMap<>();
        if (arguments.get(key) instanceof Map<?, ?> given) {
            given.forEach((name, value) ->
                texts.put(String.valueOf(name), String.valueOf(value)));
        }
        return texts;
    }

    /** A name no other client on this machine has. */
    String instance() {
        return ProcessHandle.current().pid() + "-" + id;
    }

    void emit(String event, Map<String, ?> fields) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("id", id);
        line.put("event", event);
        line.putAll(fields);
        String text = RemotingSerializable.toJson(line, false);
        synchronized (EVENTS) {
            EVENTS.println(text);
            EVENTS.flush();
        }
    }
}
