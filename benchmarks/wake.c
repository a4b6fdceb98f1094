/* Measures how long a waiting pull waits on after a send, and prints one line of JSON.
 *
 *     wake PORT [ms=3000] [topic=NAME]
 *
 * One connection waits with a pull at the end of a queue, another sends one message to
 * it: the latency is from the send's write to the pull's answer. Between two sends lies
 * a pause, so that each pull waits and the server has nothing else to do.
 */
#include "remoting.h"

enum { PAUSE_US = 1000, ROOM = 4096, MOST = 1000000, SYS_FLAGS = 6 /* suspend, subscription */ };

static const char *topic = "bench";

static void ask(int fd, int code, const char *fields, const char *body) {
    char frame[ROOM], *header = frame + 8;
    int length = snprintf(header, ROOM - 8,
                          "{\"code\":%d,\"extFields\":{%s},\"flag\":0,\"language\":\"JAVA\","
                          "\"opaque\":1,\"serializeTypeCurrentRPC\":\"JSON\",\"version\":479}",
                          code, fields);
    size_t body_bytes = strlen(body);
    if (8 + length + body_bytes > ROOM) die("the topic's name is too long");
    put32(frame, 4 + length + body_bytes);
    put32(frame + 4, length);
    memcpy(header + length, body, body_bytes);
    ssize_t bytes = 8 + length + body_bytes;
    if (write(fd, frame, bytes) != bytes) die("write");
}

static void read_all(int fd, char *at, size_t bytes) {
    while (bytes) {
        ssize_t got = read(fd, at, bytes);
        if (got <= 0) die("read");
        at += got;
        bytes -= got;
    }
}

/* The code of the next answer, and the number that its header has under a name. */
static int answer(int fd, const char *name, long long *number) {
    char frame[ROOM];
    read_all(fd, frame, 4);
    size_t bytes = get32(frame);
    if (bytes > ROOM) die("answer too long");
    read_all(fd, frame, bytes);
    size_t header_bytes = get32(frame) & 0xFFFFFF;
    *number = field(frame + 4, header_bytes, name);
    return field(frame + 4, header_bytes, "\"code\":");
}

static void send_one(int fd) {
    char fields[1024];
    snprintf(fields, sizeof fields,
             "\"a\":\"bench_send\",\"b\":\"%s\",\"c\":\"TBW102\",\"d\":\"1\",\"e\":\"0\","
             "\"f\":\"0\",\"g\":\"1795248367175\",\"h\":\"0\",\"i\":\"WAIT\\u0001true\","
             "\"j\":\"0\",\"k\":\"false\",\"m\":\"false\"",
             topic);
    ask(fd, SEND_V2, fields, "wake");
}

static void pull_at(int fd, long long offset) {
    char fields[1024];
    snprintf(fields, sizeof fields,
             "\"consumerGroup\":\"bench_pull\",\"topic\":\"%s\",\"queueId\":\"0\","
             "\"queueOffset\":\"%lld\",\"maxMsgNums\":\"32\",\"sysFlag\":\"%d\","
             "\"commitOffset\":\"0\",\"suspendTimeoutMillis\":\"15000\","
             "\"subscription\":\"*\",\"subVersion\":\"1795248367175\","
             "\"expressionType\":\"TAG\"",
             topic, offset, SYS_FLAGS);
    ask(fd, PULL, fields, "");
}

int main(int argc, char **argv) {
    long ms = 3000;
    if (argc < 2) die("usage: wake PORT [name=value ...]");
    for (int index = 2; index < argc; index++)
        if (!strncmp(argv[index], "topic=", 6)) topic = argv[index] + 6;
        else if (sscanf(argv[index], "ms=%ld", &ms) != 1) die(argv[index]);
    int sender = join_port(atoi(argv[1])), puller = join_port(atoi(argv[1]));
    static uint32_t latencies_us[MOST];
    long long offset, next;
    uint64_t count = 0, errors = 0;
    send_one(sender);
    if (answer(sender, "\"queueOffset\":", &offset) != SUCCESS) die("the first send failed");
    int64_t began = now_ns(), until = began + ms * 1000000;
    while (count < MOST && now_ns() < until) {
        pull_at(puller, ++offset);
        usleep(PAUSE_US);
        int64_t sent = now_ns();
        send_one(sender);
        int code = answer(puller, "\"nextBeginOffset\":", &next);
        latencies_us[count++] = (now_ns() - sent) / 1000;
        errors += code != SUCCESS || next != offset + 1;
        errors += answer(sender, "\"queueOffset\":", &next) != SUCCESS;
    }
    report(count, count, errors, (now_ns() - began) / 1e9, latencies_us, count);
    return 0;
}
