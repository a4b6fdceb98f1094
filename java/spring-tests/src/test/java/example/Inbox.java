package example;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Holds what a listener received until a test takes it. */
final class Inbox {
    private static final long WAIT_S = 60;

    private final BlockingQueue<String> received = new LinkedBlockingQueue<>();

    void put(String body) {
        received.add(body);
    }

    /** Waits for the next one. */
    String take() throws InterruptedException {
        String body = received.poll(WAIT_S, TimeUnit.SECONDS);
        if (body == null) {
            throw new AssertionError("nothing was received in " + WAIT_S + " s");
        }
        return body;
    }

    List<String> take(int count) throws InterruptedException {
        List<String> bodies = new ArrayList<>();
        while (bodies.size() < count) {
            bodies.add(take());
        }
        return bodies;
    }
}
