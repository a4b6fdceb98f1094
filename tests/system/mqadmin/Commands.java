// Runs mqadmin command lines from the standard input in one JVM, each followed by a line "--".

import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.rocketmq.tools.command.MQAdminStartup;

public final class Commands {
    public static void main(String[] args) throws Exception {
        System.setErr(System.out);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            MQAdminStartup.main0(line.split(" "), null);
            System.out.println("\n--");
            System.out.flush();
        }
        System.exit(0);
    }
}
