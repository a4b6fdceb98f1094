// What producers and consumers are set to alike, and what consumers want.

import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.remoting.RPCHook;

@SuppressWarnings("deprecation")
final class Options {
    private Options() { }

    static void apply(Command command, ClientConfig client) {
        client.setNamesrvAddr(command.text("namesrv"));
        client.setInstanceName(command.instance());
        if (command.has("namespace")) {
            client.setNamespace(command.text("namespace"));
        }
        if (command.has("poll_routes_ms")) {
            client.setPollNameServerInterval((int) command.number("poll_routes_ms", 0));
        } else {
            // A loaded machine may need longer than the 3 s of the default.
            client.setMqClientApiTimeout(30_000);
        }
        if (command.has("unit")) {
            client.setUnitMode(true);
            client.setUnitName(command.text("unit"));
        }
    }

    /** Which messages of its topic a command wants. */
    static MessageSelector selector(Command command) {
        return command.has("sql")
            ? MessageSelector.bySql(command.text("sql"))
            : MessageSelector.byTag(command.text("tags", "*"));
    }

    /** What signs each request with the command's access key; null without one. */
    static RPCHook hook(Command command) {
        if (!command.has("access_key")) {
            return null;
        }
        try {
            String place = "org.apache.rocketmq.acl.common.";
            Class<?> kind = Class.forName(place + "SessionCredentials");
            Object credentials = kind.getConstructor(String.class, String.class)
                .newInstance(command.text("access_key"), command.text("secret_key"));
            return (RPCHook) Class.forName(place + "AclClientRPCHook")
                .getConstructor(kind).newInstance(credentials);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    /** The settings of a command, to tell clients with others apart. */
    static String describe(Command command) {
        return String.join("|", command.text("namespace", ""), command.text("unit", ""),
            command.text("poll_routes_ms", ""), "" + command.flag("trace"),
            command.text("trace_topic", ""), command.text("access_key", ""));
    }

    /** Where traces go; null for the topic that clients and brokers agree on. */
    static String traceTopic(Command command) {
        return command.text("trace_topic", null);
    }
}
