// Reads files as RocketMQ's broker does: prints each account that its ACL 1.0 has.

import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.rocketmq.acl.plain.PlainPermissionManager;

public class ReadPlainAcl {
    // Arguments: where answers go, and folders that each hold conf/plain_acl.yml.
    // An answer is "refused", or a line for each account, and ends with "--".
    public static void main(String[] arguments) throws Exception {
        try (PrintStream answers = new PrintStream(arguments[0], "UTF-8")) {
            for (int i = 1; i < arguments.length; i++) {
                System.setProperty("rocketmq.home.dir", arguments[i]);
                try {
                    var manager = new PlainPermissionManager();
                    for (var one : manager.getAllAclConfig().getPlainAccessConfigs()) {
                        answers.println(String.join("\t", List.of(
                            text(one.getAccessKey()), text(one.getSecretKey()),
                            text(one.getWhiteRemoteAddress()), text(one.isAdmin()),
                            text(one.getDefaultTopicPerm()), text(one.getTopicPerms()))));
                    }
                } catch (Exception | Error error) {
                    answers.println("refused");
                }
                answers.println("--");
            }
        }
        // It watches its files.
        System.exit(0);
    }

    private static String text(Object value) {
        return String.valueOf(value);
    }
}
