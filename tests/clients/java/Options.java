// What producers and consumers are set to alike.

import org.apache.rocketmq.client.ClientConfig;

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

    /** The settings of a command, to tell clients with others apart. */
    static String describe(Command command) {
        return String.join("|", command.text("namespace", ""), command.text("unit", ""),
            command.text("poll_routes_ms", ""), "" + command.flag("trace"));
    }
}
