// The `produce` command: the shape of RocketMQ's own producer benchmark. One producer,
// many threads, each sends, waits for the answer, and sends again.

import java.util.Arrays;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.ArrayList;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;

final class Producers {
    private static int instances;

    private Producers() {
    }

    static void run(String nameServer, String topic, int threads, int size, int ms)
        throws Exception {
        var producer = new DefaultMQProducer("bench_java_producer");
        producer.setNamesrvAddr(nameServer);
        producer.setInstanceName("producer-" + instances++);
        producer.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
        producer.start();
        byte[] body = new byte[size];
        Arrays.fill(body, (byte) 'x');
        // The topic, the connection and the compiler's first work are not measured.
        send(producer, topic, body, threads, ms / 4);
        Load.say("{\"event\":\"began\"}");
        long began = System.nanoTime();
        var sent = send(producer, topic, body, threads, ms);
        double seconds = (System.nanoTime() - began) / 1e9;
        int count = sent.stream().mapToInt(one -> one.count).sum();
        int errors = sent.stream().mapToInt(one -> one.errors).sum();
        int[] latencies = sent.stream()
            .flatMapToInt(one -> Arrays.stream(one.latenciesUs, 0, one.count))
            .sorted().toArray();
        Load.say(
            "{\"event\":\"ended\",\"messages\":%d,\"requests\":%d,\"errors\":%d,"
                + "\"seconds\":%.6f,\"p50_us\":%d,\"p99_us\":%d}",
            count, count, errors, seconds, latencies[count / 2],
            latencies[(int) (count * 99L / 100)]);
        producer.shutdown();
    }

    private static ArrayList<Sender> send(
        DefaultMQProducer producer, String topic, byte[] body, int threads, int ms)
        throws Exception {
        var pool = Executors.newFixedThreadPool(threads);
        long until = System.nanoTime() + ms * 1_000_000L;
        var running = new ArrayList<Future<Sender>>();
        for (int index = 0; index < threads; index++) {
            running.add(pool.submit(() -> new Sender().send(producer, topic, body, until)));
        }
        var ended = new ArrayList<Sender>();
        for (var one : running) {
            ended.add(one.get());
        }
        pool.shutdown();
        return ended;
    }

    private static final class Sender {
        private int[] latenciesUs = new int[1024];
        private int count;
        private int errors;

        Sender send(DefaultMQProducer producer, String topic, byte[] body, long until)
            throws InterruptedException {
            // Each sends once at least, however late it starts.
            do {
                long began = System.nanoTime();
                try {
                    producer.send(new Message(topic, body));
                } catch (InterruptedException error) {
                    throw error;
                } catch (Exception error) {
                    if (errors++ == 0) {
                        System.err.println(error);
                    }
                    continue;
                }
                if (count == latenciesUs.length) {
                    latenciesUs = Arrays.copyOf(latenciesUs, 2 * count);
                }
                latenciesUs[count++] = (int) ((System.nanoTime() - began) / 1000);
            } while (System.nanoTime() < until);
            return this;
        }
    }
}
