/* SPDX-License-Identifier: Apache-2.0 */
/* See bench.h. One thread each, but for the clock and the figures, which any may use. */
#include "bench/bench.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/varint.h"
#include "lib/record/build.h"

uint64_t now_ns(void)
{
    return (uint64_t)clock_mono_ns();
}

void die(const char *fmt, ...)
{
    int saved = errno;
    va_list ap;

    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, " (%s)\n", strerror(saved));
    exit(1);
}

/* ---- figures ---- */
void figure(const char *name, double value, const char *unit)
{
    printf("%s %.6g %s\n", name, value, unit);
    fflush(stdout);
}

static int compare_ns(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

void figure_latency(const char *name, uint64_t *samples_ns, size_t n)
{
    char full[128];

    if (n == 0)
        return;
    qsort(samples_ns, n, sizeof *samples_ns, compare_ns);
    snprintf(full, sizeof full, "%s.p50", name);
    figure(full, (double)samples_ns[n / 2] / 1e3, "us");
    snprintf(full, sizeof full, "%s.p99", name);
    figure(full, (double)samples_ns[n * 99 / 100] / 1e3, "us");
}

/* xorshift: the same lines in every run */
static uint32_t next_random(void)
{
    static uint64_t s = 88172645463325252u;

    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    return (uint32_t)(s >> 16);
}

void log_line_fill(char *ret, size_t n)
{
    static const char *const words[] = { "upstream ", "timeout ", "retry ", "cache ", "miss ", "user ",
                                         "session ",  "ok ",      "db ",    "query ", "slow ", "node " };
    char head[160];
    uint32_t a = next_random(), b = next_random();
    size_t used = (size_t)snprintf(head, sizeof head,
                                   "{\"ts\":17%08u%03u,\"ip\":\"10.%u.%u.%u\",\"path\":\"/api/v1/orders/%u\","
                                   "\"us\":%u,\"msg\":\"",
                                   a % 100000000, b % 1000, a >> 8 & 255, b >> 8 & 255, b & 255, a % 100000,
                                   b % 250000);

    used = MIN(used, n);
    memcpy(ret, head, used);
    while (used < n) {
        const char *w = words[next_random() % ARRAY_LEN(words)];
        size_t take = MIN(strlen(w), n - used);
        memcpy(ret + used, w, take);
        used += take;
    }
}

/* ---- the connection ---- */
int dial(const char *host_port)
{
    char host[256];
    int one = 1;
    struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *list;

    snprintf(host, sizeof host, "%s", host_port);
    char *colon = strrchr(host, ':');
    if (colon == NULL)
        die("%s: HOST:PORT is expected", host_port);
    *colon = '\0';
    if (getaddrinfo(host, colon + 1, &hints, &list) != 0)
        die("%s cannot be resolved", host);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, list->ai_addr, list->ai_addrlen) < 0)
        die("connect to %s", host_port);
    freeaddrinfo(list);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

void send_all(int fd, const void *p, size_t n)
{
    while (n > 0) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            die("send");
        p = (const char *)p + k;
        n -= (size_t)k;
    }
}

static void recv_all(int fd, uint8_t *p, size_t n)
{
    while (n > 0) {
        ssize_t k = recv(fd, p, n, 0);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            die("the broker closed the connection");
        p += k;
        n -= (size_t)k;
    }
}

void recv_reply(int fd, struct bytebuf *ret)
{
    uint8_t size[4];

    recv_all(fd, size, sizeof size);
    ret->n = 0;
    recv_all(fd, bytebuf_extend(ret, get_be32(size)), get_be32(size));
}

/* ---- requests ---- */
void put_i8(struct bytebuf *b, int v)
{
    *bytebuf_extend(b, 1) = (uint8_t)v;
}

void put_i16(struct bytebuf *b, int v)
{
    put_be16(bytebuf_extend(b, 2), (uint16_t)v);
}

void put_i32(struct bytebuf *b, int64_t v)
{
    put_be32(bytebuf_extend(b, 4), (uint32_t)v);
}

void put_i64(struct bytebuf *b, int64_t v)
{
    put_be64(bytebuf_extend(b, 8), (uint64_t)v);
}

void put_string(struct bytebuf *b, const char *s)
{
    put_i16(b, (int)strlen(s));
    bytebuf_adds(b, s);
}

void request_begin(struct bytebuf *b, int api, int version, int correlation_id)
{
    b->n = 0;
    put_i32(b, 0);
    put_i16(b, api);
    put_i16(b, version);
    put_i32(b, correlation_id);
    put_string(b, "bench");
}

void request_end(struct bytebuf *b)
{
    put_be32(b->p, (uint32_t)(b->n - 4));
}

void batch_fill(struct bytebuf *ret, const void *value, size_t n_value, int n_records)
{
    struct batch_builder builder;
    struct batch_producer nobody = { .id = -1, .epoch = -1, .base_sequence = -1 };
    struct kstr v = { value, (int32_t)n_value };
    int64_t now_ms = clock_wall_ms();

    batch_builder_init(&builder);
    for (int i = 0; i < n_records; i++)
        batch_builder_add(&builder, now_ms, KSTR_NULL, v, NULL, 0);
    ret->n = 0;
    if (batch_builder_finish(&builder, CODEC_NONE, 0, &nobody, 0, ret) != 0)
        die("a batch cannot be built");
    batch_builder_done(&builder);
}

void produce_request(struct bytebuf *b, const char *topic, int acks, const struct bytebuf *batch)
{
    request_begin(b, 0, 3, 7);
    put_i16(b, -1);
    put_i16(b, acks);
    put_i32(b, 10000);
    put_i32(b, 1);
    put_string(b, topic);
    put_i32(b, 1);
    put_i32(b, 0);
    put_i32(b, (int64_t)batch->n);
    bytebuf_add(b, batch->p, batch->n);
    request_end(b);
}

/* correlation id, count 1, topic, count 1, partition, error */
int produce_error(const struct bytebuf *reply)
{
    int n_topic = get_be16(reply->p + 8);

    return (int16_t)get_be16(reply->p + 10 + n_topic + 8);
}
