/* What load.c and wake.c share: numbers in frames, time, and the latencies' ranks. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PULL = 11, END_TRANSACTION = 37, SEND_V2 = 310, SEND_BATCH = 320,
       POP = 200050, ACK = 200051, CHANGE_INVISIBLE = 200053 };
enum { SUCCESS = 0, PULL_NOT_FOUND = 19, PULL_RETRY = 20, PULL_OFFSET_MOVED = 21,
       POLLING_FULL = 209, POLLING_TIMEOUT = 210 };

static inline void die(const char *what) {
    fprintf(stderr, "load: %s: %s\n", what, errno ? strerror(errno) : "unexpected");
    exit(1);
}

static inline int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static inline void put32(char *at, uint32_t value) {
    value = htonl(value);
    memcpy(at, &value, 4);
}

static inline uint32_t get32(const char *at) {
    uint32_t value;
    memcpy(&value, at, 4);
    return ntohl(value);
}

/* The number after a name in a JSON header, quoted or not. */
static inline long long field(const char *header, size_t bytes, const char *name) {
    const char *at = memmem(header, bytes, name, strlen(name));
    if (!at) return -1;
    at += strlen(name);
    return strtoll(at + (*at == '"'), NULL, 10);
}

/* A connection to a port of 127.0.0.1. */
static inline int join_port(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address)) die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static inline int ascending(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static inline void report(uint64_t requests, uint64_t messages, uint64_t errors,
                          double seconds, uint32_t *latencies_us, size_t answers) {
    if (!answers) die("nothing was asked");
    qsort(latencies_us, answers, sizeof *latencies_us, ascending);
    printf("{\"requests\":%llu,\"messages\":%llu,\"errors\":%llu,\"seconds\":%.6f,"
           "\"p50_us\":%u,\"p99_us\":%u}\n",
           (unsigned long long)requests, (unsigned long long)messages,
           (unsigned long long)errors, seconds, latencies_us[answers / 2],
           latencies_us[answers * 99 / 100]);
}
