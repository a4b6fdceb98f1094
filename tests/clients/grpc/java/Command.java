// One command line: its arguments by name, and the events that answer it.

import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.apis.ClientConfiguration;

final class Command {
    // What the library prints to System.out does not come between events.
    private static final PrintStream EVENTS = new PrintStream(
        new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
    private static final Gson GSON = new Gson();

    /** By default 3 s, as long as a loaded machine may stand still. */
    private static final Duration REQUEST_TIMEOUT = Duration.ofSeconds(30);

    final int id;
    private final JsonObject arguments;

    Command(String line) {
        this(JsonParser.parseString(line).getAsJsonObject());
    }

    private Command(JsonObject arguments) {
        this.arguments = arguments;
        this.id = (int) number("id", 0);
    }

    boolean has(String key) {
        return arguments.has(key);
    }

    String text(String key) {
        return arguments.get(key).getAsString();
    }

    String text(String key, String otherwise) {
        return has(key) ? text(key) : otherwise;
    }

    long number(String key, long otherwise) {
        return has(key) ? arguments.get(key).getAsLong() : otherwise;
    }

    /** The objects of a list, each readable like a command. */
    List<Command> list(String key) {
        List<Command> found = new ArrayList<>();
        for (JsonElement one : arguments.getAsJsonArray(key)) {
            found.add(new Command(one.getAsJsonObject()));
        }
        return found;
    }

    /** A message that says a number, of one of {@code groups} message groups in turn. */
    Command numbered(long number) {
        var message = new JsonObject();
        message.addProperty("body", String.valueOf(number));
        if (has("groups")) {
            message.addProperty("group", String.valueOf(number % number("groups", 1)));
        }
        return new Command(message);
    }

    /** The entries of an object as text. */
    Map<String, String> texts(String key) {
        Map<String, String> texts = new LinkedHashMap<>();
        if (has(key)) {
            arguments.getAsJsonObject(key).entrySet().forEach(
                entry -> texts.put(entry.getKey(), entry.getValue().getAsString()));
        }
        return texts;
    }

    /** With TLS, which is what the client does when it is told nothing. */
    ClientConfiguration configuration() {
        return ClientConfiguration.newBuilder()
            .setEndpoints(text("namesrv"))
            .setRequestTimeout(REQUEST_TIMEOUT)
            .build();
    }

    void emit(String event, Map<String, ?> fields) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("id", id);
        line.put("event", event);
        line.putAll(fields);
        String text = GSON.toJson(line);
        synchronized (EVENTS) {
            EVENTS.println(text);
            EVENTS.flush();
        }
    }
}
