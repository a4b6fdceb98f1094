"""RocketMQ 5's gRPC protocol, apache.rocketmq.v2, over the same processors as remoting.

Each method is a function under `@rpc`, which is given the request and a `Call`. What it
wants done it asks of the processors, by their own headers, through a `Caller`: a `Peer`
in this process. Clients that said who they are have a `Session`.
"""
