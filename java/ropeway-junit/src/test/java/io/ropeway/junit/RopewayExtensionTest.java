package io.ropeway.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.platform.testkit.engine.EngineTestKit;
import org.junit.platform.testkit.engine.EventStatistics;

/** Runs the classes below, each of which is used as a user would, and looks at what came of it. */
class RopewayExtensionTest {
    private static final List<String> seen = new ArrayList<>();

    @Test
    void aStaticFieldGivesTheClassAndThoseInItOneGateway() {
        run(Static.class, 3, 0);
        assertEquals(1, new HashSet<>(seen).size());
        assertFalse(Probe.answers(seen.get(0)));
    }

    @Test
    void aFieldThatIsNotStaticGivesEachTestItsOwn() {
        run(Each.class, 2, 0);
        assertEquals(2, new HashSet<>(seen).size());
        assertFalse(Probe.answers(seen.get(0)));
        assertFalse(Probe.answers(seen.get(1)));
    }

    @Test
    void theAnnotationStartsOneWithTopicsAndGivesItToTests() {
        run(Annotated.class, 1, 0);
        assertFalse(Probe.answers(seen.get(0)));
    }

    @Test
    void theLogOfATestThatFailsIsPrinted() {
        String printed = run(Failing.class, 1, 1);
        assertTrue(printed.contains("ropeway, in fails("), printed);
        assertTrue(printed.contains("Topic:made-by-it"), printed);
        assertFalse(printed.contains("made-before"), printed);
    }

    @Test
    void anExtensionThatWasNotRegisteredSaysHowToDoThat() {
        IllegalStateException error =
                assertThrows(
                        IllegalStateException.class,
                        () -> RopewayExtension.builder().build().nameServer());
        assertTrue(error.getMessage().contains("@RegisterExtension"));
    }

    /** Runs the tests of a class; returns what they print to the standard error. */
    private static String run(Class<?> tests, int passed, int failed) {
        seen.clear();
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        PrintStream before = System.err;
        System.setErr(new PrintStream(printed, true));
        try {
            EngineTestKit.engine("junit-jupiter")
                    .selectors(selectClass(tests))
                    .execute()
                    .testEvents()
                    .assertStatistics(
                            (EventStatistics found) -> found.succeeded(passed).failed(failed));
        } finally {
            System.setErr(before);
        }
        return printed.toString();
    }

    static class Static {
        @RegisterExtension
        static RopewayExtension ropeway = RopewayExtension.builder().build();

        @BeforeAll
        static void itRunsBeforeAll() {
            seen.add(ropeway.nameServer());
        }

        @Test
        void first() {
            assertTrue(Probe.answers(ropeway.nameServer()));
        }

        @Test
        void second(RopewayGateway gateway) {
            seen.add(gateway.nameServer());
        }

        @Nested
        class Inner {
            @Test
            void third() {
                seen.add(ropeway.nameServer());
            }
        }
    }

    static class Each {
        @RegisterExtension RopewayExtension ropeway = RopewayExtension.builder().build();

        @Test
        void first() {
            seen.add(ropeway.nameServer());
        }

        @Test
        void second() {
            seen.add(ropeway.nameServer());
        }
    }

    @RopewayTest(
            topics = {"orders", "payments:3"},
            options = {"--no-auto-create"},
            grpc = true)
    static class Annotated {
        private final RopewayGateway gateway;

        Annotated(RopewayGateway gateway) {
            this.gateway = gateway;
        }

        @Test
        void topicsAreThere() {
            seen.add(gateway.nameServer());
            assertEquals(gateway.nameServer(), gateway.endpoints());
            assertTrue(gateway.log().contains("topic=orders queues=8"));
            assertTrue(gateway.log().contains("topic=payments queues=3"));
        }
    }

    static class Failing {
        @RegisterExtension
        static RopewayExtension ropeway =
                RopewayExtension.builder().topic("made-before").build();

        @Test
        void fails() {
            ropeway.gateway().run("topic", "create", "made-by-it");
            fail("as it shall");
        }

        @Test
        void passes() {}
    }
}
