/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load generator that costs next to nothing itself: one batch is built once and sent again and again, and of what it fetches it
 * reads batch headers only, to know the next offset.
 *
 *   load produce -b HOST:PORT -t TOPIC [-s value bytes] [-n records a batch] [-k requests in flight] [-T seconds] [-a acks]
 *   load fetch   -b HOST:PORT -t TOPIC [-m bytes a reply] [-T seconds]
 *   load latency -b HOST:PORT -t TOPIC [-s value bytes] [-r records a second] [-c records]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench.h"
#include "lib/base/mem.h"
#include "lib/base/varint.h"

enum { BATCH_HEADER = 61, IN_FLIGHT_MAX = 4096 };

static const char *broker = "127.0.0.1:9092", *topic = "bench";
static int value_bytes = 1024, records = 60, in_flight = 4, acks = -1, rate = 1000, count = 3000;
static int64_t reply_bytes = 1 << 20;
static double seconds = 1.5;

static void pause_ns(uint64_t ns)
{
    struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

    nanosleep(&t, NULL);
}

/* Asks for the topic until it is there: asking makes it. */
static void topic_make(int fd)
{
    struct bytebuf b = { 0 }, reply = { 0 };

    for (int tries = 0; tries < 100; tries++) {
        request_begin(&b, 3, 0, 1);
        put_i32(&b, 1);
        put_string(&b, topic);
        request_end(&b);
        send_all(fd, b.p, b.n);
        recv_reply(fd, &reply);
        /* version 0: brokers (id, host, port), then topics, each beginning with its error */
        const uint8_t *p = reply.p + 4;
        for (int n = (int)get_be32(p), i = (p += 4, 0); i < n; i++)
            p += 6 + get_be16(p + 4) + 4;
        if (get_be32(p) == 1 && get_be16(p + 4) == 0)
            break;
        pause_ns(50000000);
    }
    bytebuf_done(&b);
    bytebuf_done(&reply);
}

static int64_t offset_of(int fd, int64_t timestamp)
{
    struct bytebuf b = { 0 }, reply = { 0 };

    request_begin(&b, 2, 1, 2);
    put_i32(&b, -1);
    put_i32(&b, 1);
    put_string(&b, topic);
    put_i32(&b, 1);
    put_i32(&b, 0);
    put_i64(&b, timestamp);
    request_end(&b);
    send_all(fd, b.p, b.n);
    recv_reply(fd, &reply);
    int64_t ret = (int64_t)get_be64(reply.p + reply.n - 8);
    bytebuf_done(&b);
    bytebuf_done(&reply);
    return ret;
}

/* ---- produce ---- */
static void take_ack(int fd, struct bytebuf *reply)
{
    recv_reply(fd, reply);
    if (produce_error(reply) != 0)
        die("produce: error %d", produce_error(reply));
}

static void run_produce(void)
{
    static uint64_t sent_ns[IN_FLIGHT_MAX], latency_ns[400000];
    struct bytebuf batch = { 0 }, request = { 0 }, reply = { 0 };
    char *value = xmalloc((size_t)value_bytes), name[96];
    int fd = dial(broker);
    uint64_t out = 0, in = 0;

    topic_make(fd);
    log_line_fill(value, (size_t)value_bytes);
    batch_fill(&batch, value, (size_t)value_bytes, records);
    produce_request(&request, topic, acks, &batch);
    uint64_t began = now_ns(), end = began + (uint64_t)(seconds * 1e9), t = began;
    while (t < end || in < out) {
        while (out - in < (uint64_t)in_flight && t < end) {
            sent_ns[out++ % IN_FLIGHT_MAX] = now_ns();
            send_all(fd, request.p, request.n);
        }
        take_ack(fd, &reply);
        t = now_ns();
        if (in < ARRAY_LEN(latency_ns))
            latency_ns[in] = t - sent_ns[in % IN_FLIGHT_MAX];
        in++;
    }
    double took = (double)(t - began) / 1e9;
    snprintf(name, sizeof name, "produce.%dB.batch%d.inflight%d", value_bytes, records, in_flight);
    figure(name, (double)in * records / took, "records/s");
    figure_latency("produce.ack", latency_ns, MIN(in, ARRAY_LEN(latency_ns)));
}

/* ---- fetch ---- */
static void fetch_request(struct bytebuf *b, int64_t offset, int max_wait_ms)
{
    request_begin(b, 1, 4, 9);
    put_i32(b, -1);
    put_i32(b, max_wait_ms);
    put_i32(b, 1);
    put_i32(b, INT32_MAX);
    put_i8(b, 0);
    put_i32(b, 1);
    put_string(b, topic);
    put_i32(b, 1);
    put_i32(b, 0);
    put_i64(b, offset);
    put_i32(b, reply_bytes);
    request_end(b);
}

/* The batches in the reply, and the high watermark. */
static struct slice fetched(const struct bytebuf *reply, int64_t *ret_hw)
{
    const uint8_t *p = reply->p + 12;

    p += 2 + get_be16(p) + 8;
    if (get_be16(p) != 0)
        die("fetch: error %d", (int16_t)get_be16(p));
    *ret_hw = (int64_t)get_be64(p + 2);
    p += 18;
    int32_t n_aborted = (int32_t)get_be32(p);
    p += 4 + (n_aborted > 0 ? 16 * n_aborted : 0);
    int32_t n = (int32_t)get_be32(p);
    return slice_of(p + 4, n > 0 ? (size_t)n : 0);
}

/* Moves *offset behind the last whole batch. */
static void walk(struct slice s, int64_t *offset)
{
    while (s.n >= BATCH_HEADER && s.n >= (size_t)get_be32(s.p + 8) + 12) {
        size_t n = (size_t)get_be32(s.p + 8) + 12;
        *offset = (int64_t)get_be64(s.p) + (int32_t)get_be32(s.p + 23) + 1;
        s = slice_of(s.p + n, s.n - n);
    }
}

static void run_fetch(void)
{
    struct bytebuf request = { 0 }, reply = { 0 };
    int fd = dial(broker);
    uint64_t bytes = 0;

    topic_make(fd);
    int64_t start = offset_of(fd, -2), offset = start, hw;
    uint64_t began = now_ns(), t = began;
    while ((double)(t - began) < seconds * 1e9) {
        fetch_request(&request, offset, 100);
        send_all(fd, request.p, request.n);
        recv_reply(fd, &reply);
        struct slice got = fetched(&reply, &hw);
        walk(got, &offset);
        bytes += got.n;
        if (offset >= hw)
            offset = start;
        t = now_ns();
    }
    figure("fetch", (double)bytes * 1e3 / (double)(t - began), "MB/s");
}

/* ---- latency: one thread sends stamped records, another waits for them in long polls ---- */
static const char mark[4] = "MARK";
static uint64_t *arrived_ns;
static atomic_int n_arrived;
static int64_t first_offset;

static void *latency_reader(void *arg)
{
    struct bytebuf request = { 0 }, reply = { 0 };
    int fd = dial(broker), n = 0;
    int64_t offset = first_offset, hw;

    while (n < count) {
        fetch_request(&request, offset, 500);
        send_all(fd, request.p, request.n);
        recv_reply(fd, &reply);
        uint64_t t = now_ns(), stamp;
        struct slice s = fetched(&reply, &hw);
        walk(s, &offset);
        const uint8_t *m;
        while (n < count && (m = memmem(s.p, s.n, mark, sizeof mark)) != NULL) {
            memcpy(&stamp, m + sizeof mark, sizeof stamp);
            arrived_ns[n++] = t - stamp;
            s = slice_of(m + 1, s.n - (size_t)(m + 1 - s.p));
        }
        atomic_store(&n_arrived, n);
    }
    return arg;
}

static void run_latency(void)
{
    struct bytebuf batch = { 0 }, request = { 0 }, reply = { 0 };
    uint64_t *ack_ns = xcalloc((size_t)count, sizeof *ack_ns);
    uint8_t *value = xcalloc(1, (size_t)MAX(value_bytes, 16));
    int fd = dial(broker);
    pthread_t reader;

    topic_make(fd);
    arrived_ns = xcalloc((size_t)count, sizeof *arrived_ns);
    first_offset = offset_of(fd, -1);
    pthread_create(&reader, NULL, latency_reader, NULL);
    memcpy(value, mark, sizeof mark);
    uint64_t due = now_ns() + 200000000;             /* the reader waits by then */
    for (int i = 0; i < count; i++) {
        uint64_t t = now_ns();
        if (t < due)
            pause_ns(due - t);
        due += 1000000000 / (uint64_t)rate;
        t = now_ns();
        memcpy(value + sizeof mark, &t, sizeof t);
        batch_fill(&batch, value, (size_t)MAX(value_bytes, 16), 1);
        produce_request(&request, topic, acks, &batch);
        send_all(fd, request.p, request.n);
        take_ack(fd, &reply);
        ack_ns[i] = now_ns() - t;
    }
    pthread_join(reader, NULL);
    figure_latency("ack", ack_ns, (size_t)count);
    figure_latency("end-to-end", arrived_ns, (size_t)atomic_load(&n_arrived));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int o;

    optind = 2;
    while ((o = getopt(argc, argv, "b:t:s:n:k:T:a:m:r:c:")) != -1) {
        switch (o) {
        case 'b': broker = optarg; break;
        case 't': topic = optarg; break;
        case 's': value_bytes = atoi(optarg); break;
        case 'n': records = atoi(optarg); break;
        case 'k': in_flight = MIN(atoi(optarg), IN_FLIGHT_MAX); break;
        case 'T': seconds = atof(optarg); break;
        case 'a': acks = atoi(optarg); break;
        case 'm': reply_bytes = atoll(optarg); break;
        case 'r': rate = atoi(optarg); break;
        case 'c': count = atoi(optarg); break;
        default: return 2;
        }
    }
    if (strcmp(what, "produce") == 0)
        run_produce();
    else if (strcmp(what, "fetch") == 0)
        run_fetch();
    else if (strcmp(what, "latency") == 0)
        run_latency();
    else
        die("usage: load produce|fetch|latency -b HOST:PORT -t TOPIC ...; the head of bench/load.c tells the options");
    return 0;
}
