package io.ropeway.junit;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * A gateway on its embedded log: a process of its own, on a free port of 127.0.0.1.
 *
 * <p>{@link #close} ends it and removes its data. If the JVM ends first, even by a kill, the
 * same happens without it.
 */
public final class RopewayGateway implements AutoCloseable {
    private static final long STOP_SECONDS = 20;
    private static final long POLL_MS = 20;
    private static final String ADVERTISED = "advertised as ";
    private static final List<String> SETTINGS =
            Collections.unmodifiableList(
                    Arrays.asList(
                            "[limits]",
                            "# No send is refused because the machine is busy.",
                            "send_wait_ms = 60_000",
                            "[log]",
                            "segment_bytes = 8_388_608"));

    private final String command;
    private final boolean grpc;
    private final Path folder;
    private final Process process;
    private final String address;
    private String wholeLog;

    RopewayGateway(GatewayOptions<?> wanted) {
        command = RopewayCommand.find(wanted.command);
        grpc = wanted.grpc;
        try {
            folder = Files.createTempDirectory("ropeway-");
            Files.write(folder.resolve("ropeway.toml"), SETTINGS);
            process = start(wanted);
        } catch (IOException error) {
            throw new RopewayException("cannot start " + command, error);
        }
        try {
            address = waitUntilReady(wanted.startTimeout);
        } catch (RuntimeException error) {
            close();
            throw error;
        }
    }

    /**
     * Begins to describe a gateway.
     *
     * @return what describes and starts it
     */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * Gives the name server's address for remoting clients.
     *
     * @return {@code 127.0.0.1:port}
     */
    public String nameServer() {
        return address;
    }

    /**
     * Gives the proxy's address for gRPC clients, which they call endpoints.
     *
     * @return {@code 127.0.0.1:port}
     * @throws IllegalStateException the gateway does not serve gRPC clients
     */
    public String endpoints() {
        if (!grpc) {
            throw new IllegalStateException(
                    "gRPC clients are not served; use builder().grpc() or"
                            + " @RopewayTest(grpc = true)");
        }
        return address;
    }

    /**
     * Runs a command of {@code ropeway} on this gateway, as {@code topic create orders}.
     *
     * @param arguments its words and options
     * @return what it printed
     * @throws RopewayException it failed; the message says why
     */
    public String run(String... arguments) {
        List<String> line = new ArrayList<>();
        line.add(command);
        Collections.addAll(line, arguments);
        ProcessBuilder program = new ProcessBuilder(line);
        program.environment().put("ROPEWAY_NAME_SERVER", address);
        program.environment().remove("ROPEWAY_CONTEXT");
        return RopewayCommand.run(program, folder);
    }

    /**
     * Gives what the gateway has logged so far, also after {@link #close}.
     *
     * @return its lines
     */
    public synchronized String log() {
        if (wholeLog != null) {
            return wholeLog;
        }
        try (InputStream log = Files.newInputStream(folder.resolve("log"))) {
            return read(log);
        } catch (IOException error) {
            throw new RopewayException("cannot read the gateway's log", error);
        }
    }

    /** Ends the gateway and removes its data; does nothing the second time. */
    @Override
    public synchronized void close() {
        if (wholeLog != null) {
            return;
        }
        // What is open can be read to its end, also when it is removed.
        try (InputStream log = Files.newInputStream(folder.resolve("log"))) {
            process.getOutputStream().close();
            if (!process.waitFor(STOP_SECONDS, TimeUnit.SECONDS)) {
                process.destroy();
                process.waitFor();
            }
            wholeLog = read(log);
        } catch (IOException error) {
            throw new RopewayException("cannot end the gateway", error);
        } catch (InterruptedException error) {
            // It ends without being waited for.
            throw RopewayCommand.interrupted(error);
        }
    }

    private Process start(GatewayOptions<?> wanted) throws IOException {
        List<String> line = new ArrayList<>();
        Collections.addAll(line, "sh", "-c", script(), "ropeway", folder.toString());
        Collections.addAll(line, command, "serve", "--listen=127.0.0.1:0");
        line.add("--data=" + folder.resolve("data"));
        line.add("--ready-file=" + folder.resolve("ready"));
        if (!wanted.has("--config")) {
            line.add("--config=" + folder.resolve("ropeway.toml"));
        }
        if (grpc) {
            line.add("--grpc");
            if (!wanted.has("--tls-cert")) {
                line.addAll(TestCertificate.optionsIn(folder));
            }
        }
        for (String topic : wanted.topics) {
            line.add("--topic=" + topic);
        }
        line.addAll(wanted.options);
        return new ProcessBuilder(line)
                .redirectErrorStream(true)
                .redirectOutput(folder.resolve("log").toFile())
                .start();
    }

    private String waitUntilReady(Duration timeout) {
        long deadline = System.nanoTime() + timeout.toNanos();
        try {
            while (System.nanoTime() < deadline) {
                String ready = contentOf("ready");
                if (ready.endsWith("\n")) {
                    return ready.substring(ready.indexOf(ADVERTISED) + ADVERTISED.length()).trim();
                }
                if (Files.exists(folder.resolve("ended"))) {
                    throw new RopewayException("the gateway did not start:\n" + log());
                }
                Thread.sleep(POLL_MS);
            }
        } catch (InterruptedException error) {
            throw RopewayCommand.interrupted(error);
        }
        throw new RopewayException("the gateway did not answer in " + timeout + ":\n" + log());
    }

    private String contentOf(String name) {
        Path file = folder.resolve(name);
        if (!Files.exists(file)) {
            return "";
        }
        try {
            return new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
        } catch (IOException error) {
            throw new RopewayException("cannot read " + file, error);
        }
    }

    private static String script() throws IOException {
        try (InputStream found = RopewayGateway.class.getResourceAsStream("gateway.sh")) {
            return read(found);
        }
    }

    private static String read(InputStream from) throws IOException {
        ByteArrayOutputStream whole = new ByteArrayOutputStream();
        byte[] part = new byte[8192];
        for (int count = from.read(part); count >= 0; count = from.read(part)) {
            whole.write(part, 0, count);
        }
        return new String(whole.toByteArray(), StandardCharsets.UTF_8);
    }

    /** Describes a gateway, and starts it. */
    public static final class Builder extends GatewayOptions<Builder> {
        private Builder() {}

        @Override
        Builder self() {
            return this;
        }

        /**
         * Starts the gateway, and returns when it answers.
         *
         * @return what runs
         * @throws RopewayException it did not start; the message has its log
         */
        public RopewayGateway start() {
            return new RopewayGateway(this);
        }
    }
}
