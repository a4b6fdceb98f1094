// Runs mqadmin command lines from the standard input in one JVM, each followed by a line "--".
// A line that begins with "briefly" is stopped after some seconds.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.Map;
import org.apache.rocketmq.tools.command.MQAdminStartup;

public final class Commands extends MQAdminStartup {
    private static final String BRIEFLY = "briefly ";
    private static final long BRIEF_MS = 4000;
    private static final long AGAIN_MS = 200;

    public static void main(String[] args) {
        System.setErr(System.out);
        hurry();
        new BufferedReader(new InputStreamReader(System.in)).lines().forEach(line -> {
            // Some commands cannot be run twice, and each run adds all of them anew.
            SUB_COMMANDS.clear();
            if (line.startsWith(BRIEFLY)) {
                runBriefly(line.substring(BRIEFLY.length()));
            } else {
                main0(line.split(" "), null);
            }
            System.out.println("\n--");
            System.out.flush();
        });
        System.exit(0);
    }

    /** Stops a command that would go on for ever. */
    private static void runBriefly(String line) {
        Thread running = new Thread(() -> main0(line.split(" "), null));
        running.start();
        try {
            running.join(BRIEF_MS);
            // A client that sends notices an interrupt, and keeps it to itself.
            while (running.isAlive()) {
                running.interrupt();
                running.join(AGAIN_MS);
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Cuts the wait of three seconds short with which connections are closed. */
    private static void hurry() {
        Thread hurrying = new Thread(() -> {
            while (true) {
                Map<Thread, StackTraceElement[]> all = Thread.getAllStackTraces();
                if (all.values().stream().anyMatch(Commands::isClosing)) {
                    all.keySet().stream()
                        .filter(one -> one.getName().startsWith("NettyEventExecutor"))
                        .forEach(Thread::interrupt);
                }
                try {
                    Thread.sleep(50);
                } catch (InterruptedException e) {
                    return;
                }
            }
        });
        hurrying.setDaemon(true);
        hurrying.start();
    }

    private static boolean isClosing(StackTraceElement[] stack) {
        return Arrays.stream(stack).anyMatch(one -> one.getMethodName().equals("shutdown")
            && one.getClassName().endsWith(".NettyRemotingClient"));
    }
}
