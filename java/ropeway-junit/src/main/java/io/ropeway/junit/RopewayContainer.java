package io.ropeway.junit;

import com.github.dockerjava.api.command.InspectContainerResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.images.builder.Transferable;
import org.testcontainers.utility.DockerImageName;

/**
 * A gateway on its embedded log in a container, for Testcontainers.
 *
 * <p>For clients on the machine of the tests, and in containers that reach its ports.
 */
public class RopewayContainer extends GenericContainer<RopewayContainer> {
    private static final int PORT = 9876;
    private static final String SCRIPT = "/serve.sh";
    private static final String SERVE =
            "exec ropeway serve --data /data --listen 0.0.0.0:%d=%s:%d %s";
    private final List<String> options = new ArrayList<>();

    /**
     * Describes a container of an image of Ropeway.
     *
     * @param image its name, as {@code ropeway}
     */
    public RopewayContainer(String image) {
        this(DockerImageName.parse(image));
    }

    /**
     * Describes a container of an image of Ropeway.
     *
     * @param image its name
     */
    public RopewayContainer(DockerImageName image) {
        super(image);
        withExposedPorts(PORT);
        // Clients are told where the broker is, which is known when the container runs.
        withCreateContainerCmdModifier(create -> create.withEntrypoint("sh"));
        withCommand("-c", "until [ -e " + SCRIPT + " ]; do sleep 0.05; done; . " + SCRIPT);
        waitingFor(Wait.forLogMessage(".*listening on .*", 1));
    }

    /**
     * Creates a topic before clients can come.
     *
     * @param name its name
     * @return this
     */
    public RopewayContainer withTopic(String name) {
        return withOptions("--topic", name);
    }

    /**
     * Creates a topic before clients can come.
     *
     * @param name its name
     * @param queues how many queues it has
     * @return this
     */
    public RopewayContainer withTopic(String name, int queues) {
        return withTopic(name + ":" + queues);
    }

    /**
     * Serves gRPC clients, too.
     *
     * @return this
     */
    public RopewayContainer withGrpc() {
        return withOptions("--grpc");
    }

    /**
     * Adds options of {@code ropeway serve}.
     *
     * @param more the options
     * @return this
     */
    public RopewayContainer withOptions(String... more) {
        options.addAll(Arrays.asList(more));
        return this;
    }

    /**
     * Gives the name server's address for remoting clients.
     *
     * @return {@code host:port}
     */
    public String nameServer() {
        return getHost() + ":" + getMappedPort(PORT);
    }

    /**
     * Gives the proxy's address for gRPC clients, which they call endpoints.
     *
     * @return {@code host:port}
     */
    public String endpoints() {
        return nameServer();
    }

    @Override
    protected void containerIsStarting(InspectContainerResponse info) {
        super.containerIsStarting(info);
        String quoted = options.stream().map(RopewayContainer::quote).collect(Collectors.joining(" "));
        String script = String.format(SERVE, PORT, getHost(), getMappedPort(PORT), quoted);
        copyFileToContainer(
                Transferable.of(script.getBytes(StandardCharsets.UTF_8), 0644), SCRIPT);
    }

    private static String quote(String word) {
        return "'" + word.replace("'", "'\\''") + "'";
    }
}
