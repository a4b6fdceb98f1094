// Runs RocketMQ 5's gRPC clients on command: JSON lines in and out. See ../README.md.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Reads commands until stdin ends; each runs on a thread of its own. */
public final class Agent {
    /** Clients that run until a {@code stop} command names them. */
    static final Map<Integer, AutoCloseable> RUNNING = new ConcurrentHashMap<>();

    private interface Action {
        void run(Command command) throws Exception;
    }

    private static final Map<String, Action> ACTIONS = Map.of(
        "produce", Producing::produce,
        "keep_sending", Producing::keepSending,
        "transact", Producing::transact,
        "recall", Producing::recall,
        "consume", Consuming::push,
        "poll", Consuming::poll,
        "consume_lite", Lite::consume,
        "subscribe_lite", Lite::subscribe,
        "unsubscribe_lite", Lite::unsubscribe,
        "stop", Agent::stop);

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

    /** A push consumer ends when its last long poll has: nobody waits for that. */
    private static void stop(Command command) {
        AutoCloseable running = RUNNING.remove((int) command.number("target", 0));
        new Thread(() -> {
            try {
                running.close();
            } catch (Exception error) {
                command.emit("missed", Messages.describe(error));
            }
        }, "closing").start();
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
