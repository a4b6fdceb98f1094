// Prints what this version of RocketMQ knows: its request codes and mqadmin's sub-commands.

import java.lang.reflect.Field;
import java.util.List;
import org.apache.rocketmq.remoting.protocol.RequestCode;
import org.apache.rocketmq.tools.command.MQAdminStartup;
import org.apache.rocketmq.tools.command.SubCommand;

public final class Known {
    public static void main(String[] args) throws Exception {
        for (Field field : RequestCode.class.getFields()) {
            System.out.println("code " + field.getName() + " " + field.getInt(null));
        }
        MQAdminStartup.initCommand();
        for (Field field : MQAdminStartup.class.getDeclaredFields()) {
            field.setAccessible(true);
            if (List.class.isAssignableFrom(field.getType())) {
                for (Object command : (List<?>) field.get(null)) {
                    System.out.println("command " + ((SubCommand) command).commandName());
                }
            }
        }
    }
}
