// The command that sends any request, signed as all others of the client are.

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.atomic.AtomicInteger;
import io.netty.channel.ChannelHandlerContext;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyRemotingClient;
import org.apache.rocketmq.remoting.netty.NettyRequestProcessor;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

final class Asking {
    private static final int WAIT_MS = 180_000;

    /** Of RequestCode, which is in another package in 5.x. */
    private static final int CHECK_TRANSACTION_STATE = 39;

    /** By access key: each user's connection stays, and with it what it registered. */
    private static final Map<String, NettyRemotingClient> CLIENTS = new ConcurrentHashMap<>();

    /** By access key: how often it was asked how a transaction ended. */
    private static final Map<String, AtomicInteger> CHECKED = new ConcurrentHashMap<>();

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
        fields.put("checked", CHECKED.get(command.text("access_key")).get());
        command.emit("answered", fields);
    }

    private static NettyRemotingClient open(Command command) {
        NettyRemotingClient client = new NettyRemotingClient(new NettyClientConfig());
        AtomicInteger checked = new AtomicInteger();
        CHECKED.put(command.text("access_key"), checked);
        client.registerRPCHook(Options.hook(command));
        client.registerProcessor(CHECK_TRANSACTION_STATE, new NettyRequestProcessor() {
            @Override
            public RemotingCommand processRequest(ChannelHandlerContext on, RemotingCommand asked) {
                checked.incrementAndGet();
                return null;
            }

            @Override
            public boolean rejectRequest() {
                return false;
            }
        }, ForkJoinPool.commonPool());
        client.start();
        return client;
    }
}
