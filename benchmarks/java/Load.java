// Loads a broker through the Java client; one command a line, an answer in JSON lines.
//
//     produce NAME_SERVER TOPIC THREADS SIZE MS   threads that send synchronously
//     consume NAME_SERVER TOPIC GROUP CLIENTS QUEUES
//                                                 push consumers, ready once each has
//                                                 its share of the queues; they wait
//     go COUNT                                    they go on until they have so many
//     end                                         they stop

import java.io.BufferedReader;
import java.io.InputStreamReader;

public final class Load {
    private Load() {
    }

    public static void main(String[] arguments) {
        try {
            obey(new BufferedReader(new InputStreamReader(System.in)));
            System.exit(0);
        } catch (Exception error) {
            // Threads of clients still run and would keep the JVM alive.
            error.printStackTrace();
            System.exit(1);
        }
    }

    private static void obey(BufferedReader lines) throws Exception {
        var consumers = new Consumers();
        for (String line; (line = lines.readLine()) != null;) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "produce" -> Producers.run(
                    words[1], words[2], number(words[3]), number(words[4]), number(words[5]));
                case "consume" -> consumers.start(
                    words[1], words[2], words[3], number(words[4]), number(words[5]));
                case "go" -> consumers.go(number(words[1]));
                case "end" -> consumers.end();
                default -> throw new IllegalArgumentException(line);
            }
        }
    }

    static void say(String text, Object... values) {
        System.out.println(String.format(text, values));
        System.out.flush();
    }

    private static int number(String word) {
        return Integer.parseInt(word);
    }
}
