// Runs RocketMQ clients on command: JSON lines in, JSON lines out. See ../README.md.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Reads commands until stdin ends; each runs on a thread of its own. */
public final class Agent {
    /** Consumers that run until a {@code stop} command names them. */
    static final Map<Integer, AutoCloseable> RUNNING = new ConcurrentHashMap<>();

    private interface Action {
        void run(Command command) throws Exception;
    }

    private static final Map<String, Action> ACTIONS = Map.ofEntries(
        Map.entry("produce", Producing::produce),
        Map.entry("consume", Pushing::start),
        Map.entry("subscribe", Pushing::subscribe),
        Map.entry("poll", Polling::start),
        Map.entry("pull", Pulling::pull),
        Map.entry("committed", Pulling::committed),
        Map.entry("request", Requesting::request),
        Map.entry("answer", Requesting::answer),
        Map.entry("offsets", Inspecting::offsets),
        Map.entry("view", Inspecting::view),
        Map.entry("query", Inspecting::query),
        Map.entry("recall", Timing::recall),
        Map.entry("transact", Transacting::start),
        Map.entry("create_topic", Inspecting::createTopic),
        Map.entry("ask", Asking::ask),
        Map.entry("stop", Agent::stop));

    public static void main(String[] arguments) throws Exception {
        endAfter(Duration.ofSeconds(Long.parseLong(arguments[0])));
        var lines = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            var command = new Command(line);
            new Thread(() -> run(command), "command-" + command.id).start();
        }
        Runtime.getRuntime().halt(0);
    }

    private static void run(Command command) {
        try {
            ACTIONS.get(command.text("do")).run(command);
            command.emit("done", Map.of());
        } catch (Throwable error) {
            command.emit("error", Messages.describe(error));
        }
    }

    private static void stop(Command command) throws Exception {
        AutoCloseable running = RUNNING.remove((int) command.number("target", 0));
        if (running != null) {
            running.close();
        }
    }

    private static void endAfter(Duration deadline) {
        var watchdog = new Thread(() -> {
            try {
                Thread.sleep(deadline.toMillis());
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
            Runtime.getRuntime().halt(3);
        }, "watchdog");
        watchdog.setDaemon(true);
        watchdog.start();
    }
}
