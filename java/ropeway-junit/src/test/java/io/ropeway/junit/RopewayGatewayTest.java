package io.ropeway.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.Collections;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RopewayGatewayTest {
    @TempDir static Path folder;

    @Test
    void closingEndsItAndRemovesItsData() throws IOException {
        Set<Path> before = Probe.folders();
        RopewayGateway gateway = RopewayGateway.builder().topic("first", 3).start();
        assertTrue(Probe.answers(gateway.nameServer()));
        String said = gateway.run("topic", "create", "second", "--queues=5");
        assertEquals("topic second created\n", said);
        RopewayException refused =
                assertThrows(
                        RopewayException.class, () -> gateway.run("topic", "create", "first"));
        assertTrue(refused.getMessage().contains("exists"), refused.getMessage());
        assertThrows(IllegalStateException.class, gateway::endpoints);

        gateway.close();
        gateway.close();
        assertFalse(Probe.answers(gateway.nameServer()));
        assertEquals(before, Probe.folders());
        String log = gateway.log();
        assertTrue(log.contains("topic=first queues=3"), log);
        assertTrue(log.contains("Topic:second after=\"{'read_queue_nums': 5"), log);
        assertTrue(log.contains("stopped"), log);
    }

    @Test
    void theErrorOfAGatewayThatDoesNotStartHasItsLog() throws IOException {
        Set<Path> before = Probe.folders();
        RopewayException error =
                assertThrows(
                        RopewayException.class,
                        () -> RopewayGateway.builder().options("--flush=never").start());
        assertTrue(error.getMessage().contains("'never' is not one of"), error.getMessage());
        assertEquals(before, Probe.folders());
    }

    @Test
    void aStartIsBounded() throws IOException {
        Set<Path> before = Probe.folders();
        String silent = script("echo I wait; exec sleep 1000");
        RopewayException error =
                assertThrows(
                        RopewayException.class,
                        () ->
                                RopewayGateway.builder()
                                        .command(silent)
                                        .startTimeout(Duration.ofMillis(300))
                                        .start());
        assertTrue(error.getMessage().startsWith("the gateway did not answer in PT0.3S"));
        assertEquals(before, Probe.folders());
    }

    @Test
    void aJvmThatIsKilledLeavesNothing() throws Exception {
        Process killed =
                new ProcessBuilder(
                                Paths.get(System.getProperty("java.home"), "bin/java").toString(),
                                "-Djava.io.tmpdir=" + folder,
                                "-cp",
                                System.getProperty("java.class.path"),
                                Waiting.class.getName())
                        .redirectError(ProcessBuilder.Redirect.INHERIT)
                        .start();
        try (BufferedReader said =
                new BufferedReader(
                        new InputStreamReader(killed.getInputStream(), StandardCharsets.UTF_8))) {
            String address = said.readLine();
            assertTrue(Probe.answers(address));
            killed.destroyForcibly().waitFor();
            Probe.await(() -> !Probe.answers(address));
        }
        try (Stream<Path> left = Files.list(folder)) {
            Set<Path> folders = left.collect(Collectors.toSet());
            for (Path one : folders) {
                Probe.await(() -> !Files.exists(one.resolve("ropeway.toml")));
            }
        }
    }

    /** Starts a gateway, says where, and waits to be killed. */
    static final class Waiting {
        public static void main(String[] arguments) throws InterruptedException {
            System.out.println(RopewayGateway.builder().start().nameServer());
            Thread.sleep(Duration.ofMinutes(10).toMillis());
        }
    }

    private static String script(String text) throws IOException {
        Path file = folder.resolve("command");
        Files.write(file, Collections.singletonList("#!/bin/sh\n" + text));
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwx------"));
        return file.toString();
    }
}
