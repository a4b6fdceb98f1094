// The command that sends any request, signed as all others of the client are.

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyRemotingClient;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

final class Asking {
    private static final int WAIT_MS = 60_000;

    /** By access key: each user's connection stays, and with it what it registered. */
    private static final Map<String, NettyRemotingClient> CLIENTS = new ConcurrentHashMap<>();

    private Asking() { }

    static void ask(Command command) throws Exception {
        RemotingCommand request =
            RemotingCommand.createRequestCommand((int) command.number("code", 0), null);
        request.setExtFields(new HashMap<>(command.texts("fields")));
        if (command.has("body")) {
            request.setBody(command.text("body").getBytes(StandardCharsets.UTF_8));
        }
        RemotingCommand answer = CLIENTS
            .computeIfAbsent(command.text("access_key"), key -> open(command))
            .invokeSync(command.text("namesrv"), request, WAIT_MS);
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("code", answer.getCode());
        fields.put("remark", String.valueOf(answer.getRemark()));
        command.emit("answered", fields);
    }

    private static NettyRemotingClient open(Command command) {
        NettyRemotingClient client = new NettyRemotingClient(new NettyClientConfig());
        client.registerRPCHook(Options.hook(command));
        client.start();
        return client;
    }
}
