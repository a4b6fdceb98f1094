/* Loads a broker with raw RocketMQ remoting frames, and prints one line of JSON.
 *
 *     load PORT send|oneway|batch|pull|transact|pop [name=number ...] [topic=NAME]
 *
 *     connections=1  TCP connections to 127.0.0.1
 *     window=1       requests in flight on each; one-way: the last of so many is answered
 *     size=128       bytes of a body
 *     batch=100      messages of a batch; most messages of a pull is `pull=32`
 *     queues=8       queues to send to in turn, or to pull from, one a request in flight
 *     offset=0       where pulls begin
 *     invisible_ms=60000  for how long others do not get what was popped
 *     keep_ms=0      popped messages are kept for so long, and not acknowledged
 *     idle=0         popped messages are left alone
 *     broker=NAME    as receipts name it
 *     delay_ms=0     sends: deliver so much later,
 *     due_ms=0       or at this moment, since 1970
 *     ms=3000        stop asking after so long,
 *     count=0        or after so many requests, or popped messages, where it is not 0
 *
 * transact sends half messages, and commits each as soon as it is answered, one-way.
 *
 * pop asks for up to `pull` messages of any queue, acknowledges each by a request of its
 * own, and asks again when all of these are answered.
 *
 * Answers that say no are counted as errors, and the first is shown.
 * One thread, level-triggered epoll, one write for all that a read has answered.
 */
#include "remoting.h"
#include <fcntl.h>
#include <stdbool.h>
#include <sys/epoll.h>

enum { ONE_WAY = 2, COMMIT = 8, PREPARED = 4, FIRST_OPAQUE = 100000, SILENCE_MS = 20000, CHUNK = 256 * 1024,
       HEADER_ROOM = 1024, ID_DIGITS = 32 };

/* A message's unique key: this and eight digits of its own. */
#define UNIQUE_PREFIX "7F00000100002A139F4C5D3A"
#define UNIQUE_DIGITS 8

struct buffer { char *data; size_t begin, end, size; };
struct slot { int64_t sent_ns, offset; int queue; long acks; bool waiting, wrapped; };
struct connection { int fd; bool blocked; struct buffer in, out; struct slot *slots; };

static long connections = 1, window = 1, size = 128, batch = 100, pull = 32, queues = 8,
            offset = 0, ms = 3000, count = 0, delay_ms = 0, due_ms = 0, invisible_ms = 60000,
            keep_ms = 0, idle = 0;
static const char *topic = "bench", *broker = "broker-0";
static int code;            /* of the requests */
static bool one_way, transact;
static char *body;          /* of a send, made once */
static size_t body_bytes;
static uint64_t asked, messages, errors, in_flight, unique;
static int64_t deadline_ns;
static struct buffer latencies;  /* u32 microseconds each */
static int epoll;

static char *reserve(struct buffer *buffer, size_t bytes) {
    if (buffer->begin == buffer->end) buffer->begin = buffer->end = 0;
    if (buffer->end + bytes > buffer->size) {
        memmove(buffer->data, buffer->data + buffer->begin, buffer->end - buffer->begin);
        buffer->end -= buffer->begin;
        buffer->begin = 0;
        if (buffer->end + bytes > buffer->size) {
            buffer->size = 2 * (buffer->end + bytes);
            if (!(buffer->data = realloc(buffer->data, buffer->size))) die("memory");
        }
    }
    return buffer->data + buffer->end;
}

/* A key of its own for every message, as clients make them. */
static void put_unique(char *at) {
    static const char digits[] = "0123456789ABCDEF";
    uint64_t value = ++unique;
    for (int index = UNIQUE_DIGITS; index--; value >>= 4) at[index] = digits[value & 15];
}

static void make_body(void) {
    static const char properties[] =
        "UNIQ_KEY\1" UNIQUE_PREFIX "00000000\2WAIT\1true\2TAGS\1TagA\2";
    size_t properties_bytes = sizeof properties - 1;
    size_t entry = 22 + size + properties_bytes;
    body_bytes = code == PULL || code == POP ? 0 : (size_t)size;
    if (code == SEND_BATCH) body_bytes = batch * entry;
    if (!(body = malloc(body_bytes + 1))) die("memory");
    memset(body, 'x', body_bytes);
    for (long index = 0; code == SEND_BATCH && index < batch; index++) {
        char *at = body + index * entry;
        memset(at, 0, 20);
        put32(at, entry);
        put32(at + 16, size);
        at[20 + size] = 0;
        at[21 + size] = properties_bytes;
        memcpy(at + 22 + size, properties, properties_bytes);
    }
}

static void number_batch(void) {
    size_t entry = body_bytes / batch;
    size_t key = 22 + size + strlen("UNIQ_KEY\1" UNIQUE_PREFIX);
    for (long index = 0; index < batch; index++) put_unique(body + index * entry + key);
}

static int put_fields(char *at, size_t room, struct slot *slot) {
    if (code == PULL)
        return snprintf(
            at, room,
            "{\"consumerGroup\":\"bench_pull\",\"topic\":\"%s\",\"queueId\":\"%d\","
            "\"queueOffset\":\"%lld\",\"maxMsgNums\":\"%ld\",\"sysFlag\":\"4\","
            "\"commitOffset\":\"0\",\"suspendTimeoutMillis\":\"0\",\"subscription\":\"*\","
            "\"subVersion\":\"1795248367175\",\"expressionType\":\"TAG\"}",
            topic, slot->queue, (long long)slot->offset, pull);
    if (code == POP)
        return snprintf(
            at, room,
            "{\"consumerGroup\":\"bench_pop\",\"topic\":\"%s\",\"queueId\":\"-1\","
            "\"maxMsgNums\":\"%ld\",\"invisibleTime\":\"%ld\",\"pollTime\":\"100\","
            "\"bornTime\":\"0\",\"initMode\":\"0\",\"expType\":\"TAG\",\"exp\":\"*\","
            "\"order\":\"false\"}",
            topic, pull, invisible_ms);
    char key[UNIQUE_DIGITS + 1] = "";
    put_unique(key);
    char delay[48] = "";
    if (delay_ms)
        snprintf(delay, sizeof delay, "TIMER_DELAY_MS\\u0001%ld\\u0002", delay_ms);
    else if (due_ms)
        snprintf(delay, sizeof delay, "TIMER_DELIVER_MS\\u0001%ld\\u0002", due_ms);
    return snprintf(
        at, room,
        "{\"a\":\"bench_send\",\"b\":\"%s\",\"c\":\"TBW102\",\"d\":\"%ld\",\"e\":\"%ld\","
        "\"f\":\"%d\",\"g\":\"%lld\",\"h\":\"0\",\"i\":\"UNIQ_KEY\\u0001" UNIQUE_PREFIX
        "%s\\u0002WAIT\\u0001true\\u0002TAGS\\u0001TagA\\u0002%s%s\",\"j\":\"0\","
        "\"k\":\"false\",\"m\":\"%s\"}",
        topic, queues, (long)(asked % queues), transact ? PREPARED : 0, 1795248367175LL,
        key, delay,
        transact ? "TRAN_MSG\\u0001true\\u0002PGROUP\\u0001bench_send\\u0002" : "",
        code == SEND_BATCH ? "true" : "false");
}

static void put_frame(struct connection *connection, int number, int flag) {
    char *frame = reserve(&connection->out, 8 + HEADER_ROOM + body_bytes);
    char *header = frame + 8;
    if (code == SEND_BATCH) number_batch();
    int length = snprintf(header, HEADER_ROOM, "{\"code\":%d,\"extFields\":", code);
    length += put_fields(header + length, HEADER_ROOM - length, &connection->slots[number]);
    length += snprintf(
        header + length, HEADER_ROOM - length,
        ",\"flag\":%d,\"language\":\"JAVA\",\"opaque\":%d,"
        "\"serializeTypeCurrentRPC\":\"JSON\",\"version\":479}",
        flag, FIRST_OPAQUE + number);
    if (length >= HEADER_ROOM) die("the topic's name is too long");
    put32(frame, 4 + length + body_bytes);
    put32(frame + 4, length);
    memcpy(header + length, body, body_bytes);
    connection->out.end += 8 + length + body_bytes;
    asked++;
}

static void put_end(struct connection *connection, const char *header, size_t bytes) {
    const char *id = memmem(header, bytes, "\"msgId\":\"", 9);
    long long offset = field(header, bytes, "\"queueOffset\":");
    if (!id || id + 9 + ID_DIGITS > header + bytes) die("a half message without its id");
    char digits[17] = "";
    memcpy(digits, id + 9 + ID_DIGITS - 16, 16);
    char *frame = reserve(&connection->out, 8 + HEADER_ROOM);
    int length = snprintf(
        frame + 8, HEADER_ROOM,
        "{\"code\":%d,\"extFields\":{\"producerGroup\":\"bench_send\","
        "\"commitLogOffset\":\"%llu\",\"topic\":\"%s\",\"msgId\":\"%s\","
        "\"tranStateTableOffset\":\"%lld\",\"commitOrRollback\":\"%d\","
        "\"transactionId\":\"%s\",\"fromTransactionCheck\":\"false\"},\"flag\":%d,"
        "\"language\":\"JAVA\",\"opaque\":%d,\"serializeTypeCurrentRPC\":\"JSON\","
        "\"version\":479}",
        END_TRANSACTION, strtoull(digits, NULL, 16), topic, UNIQUE_PREFIX, offset, COMMIT,
        UNIQUE_PREFIX, ONE_WAY, FIRST_OPAQUE);
    put32(frame, 4 + length);
    put32(frame + 4, length);
    connection->out.end += 8 + length;
}

static void complain(const char *header, size_t bytes) {
    if (!errors++) fprintf(stderr, "load: answer %.*s\n", (int)bytes, header);
}

/* Where the pop began to read a queue: "retry queue start", joined by semicolons. */
static long long start_of(const char *header, size_t bytes, int queue) {
    const char *at = memmem(header, bytes, "\"startOffsetInfo\":\"", 19);
    for (at = at ? at + 19 : NULL; at; at = memchr(at, ';', header + bytes - at)) {
        at += *at == ';';
        int retry, found;
        long long start;
        if (sscanf(at, "%d %d %lld", &retry, &found, &start) == 3 && found == queue) return start;
    }
    die("a message of a queue that the answer does not name");
    return 0;
}

static void put_receipt(struct connection *connection, int number, const char *header,
                        size_t header_bytes, const char *message) {
    int queue = get32(message + 12);
    long long at = (long long)get32(message + 20) << 32 | get32(message + 24);
    char keep[48] = "";
    if (keep_ms) snprintf(keep, sizeof keep, ",\"invisibleTime\":\"%ld\"", keep_ms);
    char *frame = reserve(&connection->out, 8 + HEADER_ROOM);
    int length = snprintf(
        frame + 8, HEADER_ROOM,
        "{\"code\":%d,\"extFields\":{\"consumerGroup\":\"bench_pop\",\"topic\":\"%s\","
        "\"queueId\":\"%d\",\"offset\":\"%lld\",\"extraInfo\":\"%lld %lld %lld %lld 0 %s %d "
        "%lld\"%s},\"flag\":0,\"language\":\"JAVA\",\"opaque\":%d,"
        "\"serializeTypeCurrentRPC\":\"JSON\",\"version\":479}",
        keep_ms ? CHANGE_INVISIBLE : ACK, topic, queue, at,
        start_of(header, header_bytes, queue), field(header, header_bytes, "\"popTime\":"),
        field(header, header_bytes, "\"invisibleTime\":"),
        field(header, header_bytes, "\"reviveQid\":"), broker, queue, at, keep,
        FIRST_OPAQUE + number);
    put32(frame, 4 + length);
    put32(frame + 4, length);
    connection->out.end += 8 + length;
}

static void ask(struct connection *connection, int number, int64_t now) {
    uint64_t so_far = code == POP ? messages : asked;
    if (now >= deadline_ns || (count && so_far >= (uint64_t)count)) return;
    struct slot *slot = &connection->slots[number];
    for (long left = one_way ? window : 1; left; left--)
        put_frame(connection, number, left > 1 ? ONE_WAY : 0);
    slot->sent_ns = now;
    slot->waiting = true;
    in_flight++;
}

static void watch(struct connection *connection, int operation, bool blocked) {
    struct epoll_event event = {EPOLLIN | (blocked ? EPOLLOUT : 0), {.ptr = connection}};
    if (epoll_ctl(epoll, operation, connection->fd, &event)) die("epoll_ctl");
}

static void flush(struct connection *connection) {
    struct buffer *out = &connection->out;
    while (out->begin < out->end) {
        ssize_t written = write(connection->fd, out->data + out->begin, out->end - out->begin);
        if (written < 0 && errno != EAGAIN) die("write");
        if (written < 0) break;
        out->begin += written;
    }
    bool blocked = out->begin < out->end;
    if (blocked != connection->blocked) watch(connection, EPOLL_CTL_MOD, blocked);
    connection->blocked = blocked;
}


static void take_pulled(struct slot *slot, int answer, const char *header,
                        size_t header_bytes, const char *data, size_t bytes) {
    if (answer == PULL_NOT_FOUND || answer == PULL_OFFSET_MOVED || answer == PULL_RETRY) {
        if (slot->wrapped) return complain(header, header_bytes);
        slot->wrapped = true;
        slot->offset = field(header, header_bytes, "\"minOffset\":");
        return;
    }
    if (answer != SUCCESS) return complain(header, header_bytes);
    size_t found = 0;
    for (size_t at = 0; at < bytes; found++) {
        uint32_t step = at + 4 <= bytes ? get32(data + at) : 0;
        if (step < 4 || step > bytes - at) return complain(header, header_bytes);
        at += step;
    }
    slot->wrapped = false;
    slot->offset = field(header, header_bytes, "\"nextBeginOffset\":");
    messages += found;
}

/* True while acknowledgements of what was popped are awaited. */
static bool take_popped(struct connection *connection, int number, int answer,
                        const char *header, size_t header_bytes, const char *data,
                        size_t bytes) {
    struct slot *slot = &connection->slots[number];
    if (slot->acks) {
        if (answer != SUCCESS) complain(header, header_bytes);
        messages += answer == SUCCESS;
        return --slot->acks > 0;
    }
    if (answer == POLLING_TIMEOUT || answer == POLLING_FULL) return false;
    if (answer != SUCCESS) return complain(header, header_bytes), false;
    for (size_t at = 0; at < bytes; at += get32(data + at)) {
        if (idle) {
            messages++;
            continue;
        }
        put_receipt(connection, number, header, header_bytes, data + at);
        slot->acks++;
    }
    return slot->acks > 0;
}

static void take(struct connection *connection, const char *frame, size_t bytes, int64_t now) {
    size_t header_bytes = get32(frame) & 0xFFFFFF;
    const char *header = frame + 4;
    if (header_bytes + 4 > bytes) die("header longer than its frame");
    int answer = field(header, header_bytes, "\"code\":");
    long long number = field(header, header_bytes, "\"opaque\":") - FIRST_OPAQUE;
    if (number < 0 || number >= window || !connection->slots[number].waiting)
        die("an answer to nothing");
    struct slot *slot = &connection->slots[number];
    uint32_t waited_us = (now - slot->sent_ns) / 1000;
    memcpy(reserve(&latencies, sizeof waited_us), &waited_us, sizeof waited_us);
    latencies.end += sizeof waited_us;
    if (code == PULL)
        take_pulled(slot, answer, header, header_bytes, header + header_bytes,
                    bytes - 4 - header_bytes);
    else if (code == POP) {
        if (take_popped(connection, number, answer, header, header_bytes,
                        header + header_bytes, bytes - 4 - header_bytes))
            return;
    } else if (answer == SUCCESS) {
        if (transact) put_end(connection, header, header_bytes);
        messages += one_way ? window : code == SEND_BATCH ? batch : 1;
    } else
        complain(header, header_bytes);
    slot->waiting = false;
    in_flight--;
    ask(connection, number, now);
}

static void receive(struct connection *connection) {
    struct buffer *in = &connection->in;
    char *room = reserve(in, CHUNK);
    ssize_t got = read(connection->fd, room, in->size - in->end);
    if (got <= 0) die("read");
    in->end += got;
    int64_t now = now_ns();
    while (in->end - in->begin >= 8) {
        const char *frame = in->data + in->begin;
        size_t bytes = get32(frame);
        if (in->end - in->begin < 4 + bytes) break;
        take(connection, frame + 4, bytes, now);
        in->begin += 4 + bytes;
    }
    flush(connection);
}

static void join(struct connection *connection, int port, int first_queue) {
    connection->fd = join_port(port);
    fcntl(connection->fd, F_SETFL, O_NONBLOCK);
    watch(connection, EPOLL_CTL_ADD, false);
    if (!(connection->slots = calloc(window, sizeof *connection->slots))) die("memory");
    for (long slot = 0; slot < window; slot++) {
        connection->slots[slot].queue = (first_queue + slot) % queues;
        connection->slots[slot].offset = offset;
    }
}

static void parse(int argc, char **argv) {
    static const struct { const char *name; long *value; } options[] = {
        {"connections", &connections}, {"window", &window}, {"size", &size},
        {"batch", &batch}, {"pull", &pull}, {"queues", &queues},
        {"offset", &offset}, {"ms", &ms}, {"count", &count}, {"delay_ms", &delay_ms},
        {"due_ms", &due_ms},
        {"invisible_ms", &invisible_ms}, {"keep_ms", &keep_ms}, {"idle", &idle}};
    if (argc < 3)
        die("usage: load PORT send|oneway|batch|pull|transact|pop [name=value ...]");
    transact = !strcmp(argv[2], "transact");
    one_way = !strcmp(argv[2], "oneway");
    code = !strcmp(argv[2], "pop") ? POP : !strcmp(argv[2], "pull") ? PULL : !strcmp(argv[2], "batch") ? SEND_BATCH : SEND_V2;
    for (int index = 3; index < argc; index++) {
        char *value = strchr(argv[index], '=');
        bool known = value && !strncmp(argv[index], "topic=", 6);
        if (known) topic = value + 1;
        if (value && !strncmp(argv[index], "broker=", 7)) known = (broker = value + 1);
        for (size_t at = 0; value && at < sizeof options / sizeof *options; at++)
            if (strlen(options[at].name) == (size_t)(value - argv[index]) &&
                !strncmp(options[at].name, argv[index], value - argv[index])) {
                *options[at].value = atol(value + 1);
                known = true;
            }
        if (!known) die(argv[index]);
    }
}

int main(int argc, char **argv) {
    parse(argc, argv);
    make_body();
    unique = (uint64_t)time(NULL) << 22;
    epoll = epoll_create1(0);
    struct connection *all = calloc(connections, sizeof *all);
    if (epoll < 0 || !all) die("epoll");
    for (long index = 0; index < connections; index++)
        join(&all[index], atoi(argv[1]), index * (one_way ? 1 : window) % queues);
    int64_t began = now_ns();
    deadline_ns = began + ms * 1000000;
    for (long index = 0; index < connections; index++) {
        for (long number = 0; number < (one_way ? 1 : window); number++)
            ask(&all[index], number, began);
        flush(&all[index]);
    }
    while (in_flight) {
        struct epoll_event events[256];
        int ready = epoll_wait(epoll, events, 256, SILENCE_MS);
        if (ready < 0 && errno == EINTR) continue;  // it was stopped, and goes on
        if (ready <= 0) die("no answer");
        for (int index = 0; index < ready; index++) {
            if (events[index].events & EPOLLOUT) flush(events[index].data.ptr);
            if (events[index].events & ~EPOLLOUT) receive(events[index].data.ptr);
        }
    }
    double seconds = (now_ns() - began) / 1e9;
    report(asked, messages, errors, seconds, (uint32_t *)latencies.data,
           latencies.end / sizeof(uint32_t));
    return 0;
}
