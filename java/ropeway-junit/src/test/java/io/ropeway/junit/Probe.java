package io.ropeway.junit;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Looks at what a gateway leaves behind. */
final class Probe {
    private static final int ANSWER_MS = 10_000;
    private static final long WAIT_MS = 60_000;

    private Probe() {}

    static boolean answers(String address) {
        String[] parts = address.split(":");
        try (Socket socket = new Socket()) {
            socket.connect(
                    new InetSocketAddress(parts[0], Integer.parseInt(parts[1])), ANSWER_MS);
            return true;
        } catch (IOException refused) {
            return false;
        }
    }

    /** Folders of gateways that are there now. */
    static Set<Path> folders() throws IOException {
        try (Stream<Path> all = Files.list(Paths.get(System.getProperty("java.io.tmpdir")))) {
            return all.filter(one -> one.getFileName().toString().startsWith("ropeway-"))
                    .filter(one -> Files.exists(one.resolve("ropeway.toml")))
                    .collect(Collectors.toSet());
        }
    }

    static void await(BooleanSupplier holds) throws InterruptedException {
        long end = System.currentTimeMillis() + WAIT_MS;
        while (!holds.getAsBoolean()) {
            if (System.currentTimeMillis() > end) {
                throw new AssertionError("not within " + WAIT_MS + " ms");
            }
            Thread.sleep(20);
        }
    }
}
