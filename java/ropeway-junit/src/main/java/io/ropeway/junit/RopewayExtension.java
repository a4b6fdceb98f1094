package io.ropeway.junit;

import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ExtensionContext.Store;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.jupiter.api.extension.TestWatcher;
import org.junit.platform.commons.support.AnnotationSupport;

/**
 * Runs a gateway while tests run, and prints its log for each test that fails.
 *
 * <pre>{@code
 * @RegisterExtension
 * static RopewayExtension ropeway = RopewayExtension.builder().topic("orders").build();
 * }</pre>
 *
 * <p>A static field gives all tests of the class, and of classes nested in it, one gateway; a
 * field that is not static gives each test its own. {@link RopewayTest} does as a static field.
 */
public final class RopewayExtension
        implements BeforeAllCallback,
                BeforeEachCallback,
                AfterAllCallback,
                TestWatcher,
                ParameterResolver {
    private static final String KEY = "gateway";

    private final GatewayOptions<?> described;
    private volatile RopewayGateway gateway;
    private volatile int shown;

    /** Takes its settings from {@link RopewayTest}. */
    public RopewayExtension() {
        this(null);
    }

    private RopewayExtension(GatewayOptions<?> described) {
        this.described = described;
    }

    /**
     * Begins to describe the extension.
     *
     * @return what describes and makes it
     */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * Gives the gateway that runs.
     *
     * @return the gateway
     * @throws IllegalStateException none was started
     */
    public RopewayGateway gateway() {
        if (gateway == null) {
            throw new IllegalStateException(
                    "the gateway is started before tests; the extension needs a field with"
                            + " @RegisterExtension, static for @BeforeAll and"
                            + " @DynamicPropertySource");
        }
        return gateway;
    }

    /**
     * Gives {@link RopewayGateway#nameServer}.
     *
     * @return {@code 127.0.0.1:port}
     */
    public String nameServer() {
        return gateway().nameServer();
    }

    /**
     * Gives {@link RopewayGateway#endpoints}.
     *
     * @return {@code 127.0.0.1:port}
     */
    public String endpoints() {
        return gateway().endpoints();
    }

    @Override
    public void beforeAll(ExtensionContext context) {
        start(context);
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        start(context);
        shown = gateway.log().length();
    }

    @Override
    public void afterAll(ExtensionContext context) {
        context.getExecutionException().ifPresent(error -> show(context));
    }

    @Override
    public void testFailed(ExtensionContext context, Throwable cause) {
        show(context);
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == RopewayGateway.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return gateway();
    }

    /** Starts it, unless it runs for this class, one around it, or this test. */
    private void start(ExtensionContext context) {
        Store store = context.getStore(Namespace.create(RopewayExtension.class, this));
        // It ends after all of the context's callbacks, so that clients can be closed in those.
        gateway =
                store.getOrComputeIfAbsent(KEY, key -> new Started(options(context)), Started.class)
                        .gateway;
    }

    private GatewayOptions<?> options(ExtensionContext context) {
        if (described != null) {
            return described;
        }
        RopewayTest asked =
                AnnotationSupport.findAnnotation(context.getRequiredTestClass(), RopewayTest.class)
                        .orElseThrow(
                                () -> new IllegalStateException("there is no @RopewayTest"));
        GatewayOptions<?> wanted = builder().options(asked.options());
        for (String topic : asked.topics()) {
            wanted.topic(topic);
        }
        wanted.grpc = asked.grpc();
        return wanted;
    }

    /** Prints what the gateway has logged since the test began. */
    private void show(ExtensionContext context) {
        if (gateway != null) {
            String log = gateway.log();
            System.err.println("ropeway, in " + context.getDisplayName() + ":");
            System.err.println(log.substring(Math.min(shown, log.length())));
        }
    }

    /** A gateway that JUnit's store ends: since 5.13 by the second interface, else the first. */
    @SuppressWarnings("deprecation")
    private static final class Started implements Store.CloseableResource, AutoCloseable {
        private final RopewayGateway gateway;

        Started(GatewayOptions<?> wanted) {
            gateway = new RopewayGateway(wanted);
        }

        @Override
        public void close() {
            gateway.close();
        }
    }

    /** Describes the extension, and makes it. */
    public static final class Builder extends GatewayOptions<Builder> {
        private Builder() {}

        @Override
        Builder self() {
            return this;
        }

        /**
         * Makes the extension, for a field with {@code @RegisterExtension}.
         *
         * @return the extension
         */
        public RopewayExtension build() {
            return new RopewayExtension(this);
        }
    }
}
