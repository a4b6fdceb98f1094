package io.ropeway.junit;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * What a gateway is started with.
 *
 * @param <B> the builder that has these methods
 */
abstract class GatewayOptions<B> {
    final List<String> topics = new ArrayList<>();
    final List<String> options = new ArrayList<>();
    String command;
    boolean grpc;
    Duration startTimeout = Duration.ofMinutes(2);

    abstract B self();

    /** Says whether an option of {@code ropeway serve} is given, as {@code --flush}. */
    final boolean has(String option) {
        return options.stream().anyMatch(one -> one.equals(option) || one.startsWith(option + "="));
    }

    /**
     * Creates a topic before clients can come.
     *
     * @param name its name
     * @return this
     */
    public B topic(String name) {
        topics.add(name);
        return self();
    }

    /**
     * Creates a topic before clients can come.
     *
     * @param name its name
     * @param queues how many queues it has
     * @return this
     */
    public B topic(String name, int queues) {
        return topic(name + ":" + queues);
    }

    /**
     * Serves gRPC clients, too; {@code ropeway[grpc]} must be installed.
     *
     * <p>With TLS and without: most of these clients use TLS unless told otherwise. The certificate
     * is made for the gateway, unless the options have one.
     *
     * @return this
     */
    public B grpc() {
        grpc = true;
        return self();
    }

    /**
     * Adds options of {@code ropeway serve}.
     *
     * @param more options as on the command line; with {@code --config} and a file, no other
     *     file is used
     * @return this
     */
    public B options(String... more) {
        Collections.addAll(options, more);
        return self();
    }

    /**
     * Chooses the command, by its path or its name in {@code PATH}.
     *
     * @param path by default the system property {@code ropeway.command}, else the environment
     *     variable {@code ROPEWAY_COMMAND}, else {@code ropeway}
     * @return this
     */
    public B command(String path) {
        command = path;
        return self();
    }

    /**
     * Bounds how long the start may take.
     *
     * @param timeout the most; two minutes by default
     * @return this
     */
    public B startTimeout(Duration timeout) {
        startTimeout = timeout;
        return self();
    }
}
