/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The least a broker can do, as a floor for cost and so a ceiling for speed: one thread, no safety, no disk sync. It checks CRCs,
 * assigns offsets, writes batches to a file, and answers a fetch by sendfile. Every topic that is named exists, with one
 * partition. Serves librdkafka, kcat and bench/load; trusts them.
 *
 *   null-broker -l PORT -d DIR
 *
 * ApiVersions 0-3, Metadata 0-4, Produce 0-7, Fetch 4, ListOffsets 1.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/bench.h"
#include "lib/base/crc32c.h"
#include "lib/base/mem.h"
#include "lib/base/varint.h"

enum { BATCH_HEADER = 61, CONNS_MAX = 4096, TOPICS_MAX = 256, RECV_BYTES = 1 << 20 };

struct entry {
    int64_t offset;
    uint64_t at;
};
struct topic {
    char name[250];
    int fd;
    int64_t next;                    /* offset */
    uint64_t size_bytes;
    struct entry *index;             /* one a batch */
    size_t n_index, cap_index;
};
/* Requests are taken one by one in order; a fetch that waits, or a piece of a file that is on its way, holds up the rest. */
struct conn {
    int fd;
    struct bytebuf in;
    struct bytebuf out;
    size_t out_done;
    int file;                        /* leaves after out */
    off_t file_at;
    size_t file_left;
    uint64_t due_ns;                 /* of the fetch at the head of in; 0: none waits */
    bool wants_out;
};
struct cursor {
    const uint8_t *p;
};

static struct topic topics[TOPICS_MAX];
static size_t n_topics;
static struct conn *conns[CONNS_MAX];
static int conns_top;                /* one more than the highest in use */
static int ep, port = 9092;
static const char *dir = ".";

static int16_t take_i16(struct cursor *c)
{
    c->p += 2;
    return (int16_t)get_be16(c->p - 2);
}

static int32_t take_i32(struct cursor *c)
{
    c->p += 4;
    return (int32_t)get_be32(c->p - 4);
}

static int64_t take_i64(struct cursor *c)
{
    c->p += 8;
    return (int64_t)get_be64(c->p - 8);
}

static struct slice take_string(struct cursor *c)
{
    int16_t n = take_i16(c);

    c->p += MAX(n, 0);
    return slice_of(c->p - MAX(n, 0), (size_t)MAX(n, 0));
}

static void put_name(struct bytebuf *b, struct slice name)
{
    put_i16(b, (int)name.n);
    bytebuf_add(b, name.p, name.n);
}

/* ---- topics ---- */
static struct topic *topic_get(struct slice name)
{
    char path[1024];

    for (size_t i = 0; i < n_topics; i++) {
        if (strlen(topics[i].name) == name.n && memcmp(topics[i].name, name.p, name.n) == 0)
            return &topics[i];
    }
    if (n_topics == TOPICS_MAX || name.n >= sizeof topics[0].name)
        die("too many topics");
    struct topic *t = &topics[n_topics++];
    memcpy(t->name, name.p, name.n);
    snprintf(path, sizeof path, "%s/%s.log", dir, t->name);
    t->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    if (t->fd < 0)
        die("%s", path);
    return t;
}

static void topic_index(struct topic *t, uint64_t at)
{
    if (t->n_index == t->cap_index) {
        t->cap_index = t->cap_index == 0 ? 1024 : 2 * t->cap_index;
        t->index = xreallocarray(t->index, t->cap_index, sizeof *t->index);
    }
    t->index[t->n_index++] = (struct entry){ t->next, at };
}

/* The offset of the first record, or -1 and an error code. */
static int64_t topic_append(struct topic *t, uint8_t *p, size_t n, int *ret_err)
{
    int64_t base = t->next;

    for (size_t at = 0; at < n;) {
        uint8_t *h = p + at;
        size_t size = (size_t)get_be32(h + 8) + 12;
        if (size < BATCH_HEADER || at + size > n || h[16] != 2 ||
            crc32c(0, h + 21, size - 21) != get_be32(h + 17)) {
            *ret_err = 2;
            return -1;
        }
        put_be64(h, (uint64_t)t->next);
        put_be32(h + 12, 0);
        topic_index(t, t->size_bytes + at);
        t->next += (int32_t)get_be32(h + 23) + 1;
        at += size;
    }
    for (size_t done = 0; done < n;) {
        ssize_t k = write(t->fd, p + done, n - done);
        if (k <= 0)
            die("append to %s", t->name);
        done += (size_t)k;
    }
    t->size_bytes += n;
    return base;
}

/* Position and size of the batches from that offset on, at most max bytes but one batch at least. */
static void topic_find(const struct topic *t, int64_t offset, size_t max, uint64_t *ret_at, size_t *ret_n)
{
    size_t low = 0, high = t->n_index;

    *ret_at = *ret_n = 0;
    if (offset >= t->next)
        return;
    while (high - low > 1) {
        size_t mid = (low + high) / 2;
        *(t->index[mid].offset <= offset ? &low : &high) = mid;
    }
    *ret_at = t->index[low].at;
    uint64_t first = (low + 1 < t->n_index ? t->index[low + 1].at : t->size_bytes) - *ret_at;
    *ret_n = MAX(MIN(t->size_bytes - *ret_at, max), first);
}

/* ---- requests: each puts the body of its answer ---- */
static void api_versions(struct bytebuf *b, int version)
{
    static const int16_t ranges[][3] = { { 0, 0, 7 }, { 1, 0, 4 }, { 2, 0, 1 }, { 3, 0, 4 }, { 18, 0, 3 } };

    put_i16(b, 0);
    if (version >= 3)
        put_i8(b, ARRAY_LEN(ranges) + 1);
    else
        put_i32(b, ARRAY_LEN(ranges));
    for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
        for (int k = 0; k < 3; k++)
            put_i16(b, ranges[i][k]);
        if (version >= 3)
            put_i8(b, 0);
    }
    if (version >= 1)
        put_i32(b, 0);
    if (version >= 3)
        put_i8(b, 0);
}

static void put_topic_metadata(struct bytebuf *b, int version, const struct topic *t)
{
    put_i16(b, 0);
    put_string(b, t->name);
    if (version >= 1)
        put_i8(b, 0);
    put_i32(b, 1);                   /* partitions: error, id, leader, replicas, in sync */
    put_i16(b, 0);
    put_i32(b, 0);
    put_i32(b, 1);
    for (int i = 0; i < 2; i++) {
        put_i32(b, 1);
        put_i32(b, 1);
    }
}

static void metadata(struct bytebuf *b, int version, struct cursor c)
{
    int32_t n = take_i32(&c);

    if (version >= 3)
        put_i32(b, 0);
    put_i32(b, 1);
    put_i32(b, 1);
    put_string(b, "127.0.0.1");
    put_i32(b, port);
    if (version >= 1)
        put_i16(b, -1);
    if (version >= 2)
        put_string(b, "null-broker");
    if (version >= 1)
        put_i32(b, 1);
    if (n < 0 || (n == 0 && version == 0)) {
        put_i32(b, (int64_t)n_topics);
        for (size_t i = 0; i < n_topics; i++)
            put_topic_metadata(b, version, &topics[i]);
        return;
    }
    put_i32(b, n);
    for (int32_t i = 0; i < n; i++)
        put_topic_metadata(b, version, topic_get(take_string(&c)));
}

/* False for acks=0, which has no answer. */
static bool produce(struct bytebuf *b, int version, struct cursor c)
{
    if (version >= 3)
        take_string(&c);
    int acks = take_i16(&c);
    take_i32(&c);
    int32_t n = take_i32(&c);
    put_i32(b, n);
    for (int32_t i = 0; i < n; i++) {
        struct slice name = take_string(&c);
        int32_t n_parts = take_i32(&c);
        put_name(b, name);
        put_i32(b, n_parts);
        for (int32_t k = 0; k < n_parts; k++) {
            int err = 0;
            put_i32(b, take_i32(&c));
            int32_t size = take_i32(&c);
            int64_t base = topic_append(topic_get(name), (uint8_t *)(uintptr_t)c.p, (size_t)size, &err);
            c.p += size;
            put_i16(b, err);
            put_i64(b, base);
            if (version >= 2)
                put_i64(b, -1);
            if (version >= 5)
                put_i64(b, 0);
        }
    }
    if (version >= 1)
        put_i32(b, 0);
    return acks != 0;
}

static void list_offsets(struct bytebuf *b, struct cursor c)
{
    take_i32(&c);
    int32_t n = take_i32(&c);
    put_i32(b, n);
    for (int32_t i = 0; i < n; i++) {
        struct slice name = take_string(&c);
        int32_t n_parts = take_i32(&c);
        put_name(b, name);
        put_i32(b, n_parts);
        for (int32_t k = 0; k < n_parts; k++) {
            put_i32(b, take_i32(&c));
            put_i16(b, 0);
            put_i64(b, -1);
            put_i64(b, take_i64(&c) == -2 ? 0 : topic_get(name)->next);
        }
    }
}

/* One topic with one partition. False: not enough yet, and time left. */
static bool fetch(struct conn *conn, struct bytebuf *b, struct cursor c)
{
    uint64_t at;
    size_t n;

    take_i32(&c);
    int32_t wait_ms = take_i32(&c), min_bytes = take_i32(&c), max_bytes = take_i32(&c);
    c.p += 1 + 4;
    struct slice name = take_string(&c);
    struct topic *t = topic_get(name);
    take_i32(&c);
    int32_t partition = take_i32(&c);
    int64_t offset = take_i64(&c);
    int32_t partition_max = take_i32(&c);
    topic_find(t, offset, (size_t)MIN(partition_max, max_bytes), &at, &n);
    if (conn->due_ns == 0)
        conn->due_ns = now_ns() + (uint64_t)wait_ms * 1000000;
    if (n < (size_t)min_bytes && offset <= t->next && now_ns() < conn->due_ns)
        return false;
    conn->due_ns = 0;
    put_i32(b, 0);
    put_i32(b, 1);
    put_name(b, name);
    put_i32(b, 1);
    put_i32(b, partition);
    put_i16(b, offset > t->next || offset < 0 ? 1 : 0);
    put_i64(b, t->next);
    put_i64(b, t->next);
    put_i32(b, 0);
    put_i32(b, (int64_t)n);
    conn->file = t->fd;
    conn->file_at = (off_t)at;
    conn->file_left = n;
    return true;
}

/* ---- connections ---- */
static void conn_wait_out(struct conn *c, bool wants_out)
{
    struct epoll_event e = { .events = EPOLLIN | (wants_out ? EPOLLOUT : 0u), .data.ptr = c };

    if (c->wants_out != wants_out)
        epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &e);
    c->wants_out = wants_out;
}

/* 0, or -1 when the peer is gone. */
static int conn_flush(struct conn *c)
{
    while (c->out_done < c->out.n || c->file_left > 0) {
        bool mem = c->out_done < c->out.n;
        ssize_t k = mem ? send(c->fd, c->out.p + c->out_done, c->out.n - c->out_done,
                               MSG_NOSIGNAL | (c->file_left > 0 ? MSG_MORE : 0))
                        : sendfile(c->fd, c->file, &c->file_at, c->file_left);
        if (k < 0 && errno == EAGAIN) {
            conn_wait_out(c, true);
            return 0;
        }
        if (k <= 0)
            return -1;
        if (mem)
            c->out_done += (size_t)k;
        else
            c->file_left -= (size_t)k;
    }
    c->out.n = c->out_done = 0;
    conn_wait_out(c, false);
    return 0;
}

/* Answers the request at p into out. False: it waits. */
static bool conn_answer(struct conn *c, const uint8_t *p)
{
    struct cursor cur = { p };
    size_t began = c->out.n;
    bool answered = true;
    int api = take_i16(&cur), version = take_i16(&cur);

    put_i32(&c->out, 0);
    put_i32(&c->out, take_i32(&cur));
    take_string(&cur);
    switch (api) {
    case 0:
        answered = produce(&c->out, version, cur);
        break;
    case 1:
        if (!fetch(c, &c->out, cur)) {
            c->out.n = began;
            return false;
        }
        break;
    case 2: list_offsets(&c->out, cur); break;
    case 3: metadata(&c->out, version, cur); break;
    case 18: api_versions(&c->out, version); break;
    default: die("api %d", api);
    }
    if (answered)
        put_be32(c->out.p + began, (uint32_t)(c->out.n - began - 4 + c->file_left));
    else
        c->out.n = began;
    return true;
}

/* 0, or -1 when the peer is gone. */
static int conn_work(struct conn *c)
{
    size_t used = 0;

    while (c->file_left == 0 && c->in.n - used >= 4) {
        size_t size = get_be32(c->in.p + used);
        if (c->in.n - used < size + 4 || !conn_answer(c, c->in.p + used + 4))
            break;
        used += size + 4;
        if (c->file_left > 0 && conn_flush(c) < 0)
            return -1;
    }
    if (used > 0)
        bytebuf_consume(&c->in, used);
    return c->wants_out ? 0 : conn_flush(c);
}

static int conn_read(struct conn *c)
{
    for (;;) {
        size_t want = RECV_BYTES;
        if (c->in.n >= 4 && get_be32(c->in.p) + (size_t)4 > c->in.n)
            want = MAX(want, get_be32(c->in.p) + (size_t)4 - c->in.n);
        ssize_t k = recv(c->fd, bytebuf_room(&c->in, want), want, 0);
        if (k < 0 && errno == EAGAIN)
            return 0;
        if (k <= 0)
            return -1;
        c->in.n += (size_t)k;
        if (conn_work(c) < 0)
            return -1;
        if ((size_t)k < want)
            return 0;
    }
}

static void conn_accept(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), one = 1;

    if (fd < 0 || fd >= CONNS_MAX)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct conn *c = conns[fd] = xcalloc(1, sizeof *c);
    conns_top = MAX(conns_top, fd + 1);
    c->fd = fd;
    struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };
    epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
}

static void conn_drop(struct conn *c)
{
    conns[c->fd] = NULL;
    close(c->fd);
    bytebuf_done(&c->in);
    bytebuf_done(&c->out);
    free(c);
}

/* Fetches that wait look again: something was produced, or their time is up. Returns epoll's time-out. */
static int wake_waiting(void)
{
    int timeout_ms = -1;

    for (int i = 0; i < conns_top; i++) {
        struct conn *c = conns[i];
        if (c == NULL || c->due_ns == 0)
            continue;
        if (conn_work(c) < 0) {
            conn_drop(c);
            continue;
        }
        uint64_t now = now_ns();
        int left_ms = c->due_ns > now ? (int)((c->due_ns - now) / 1000000 + 1) : 0;
        if (c->due_ns != 0 && (timeout_ms < 0 || left_ms < timeout_ms))
            timeout_ms = left_ms;
    }
    return timeout_ms;
}

static int listen_on(int number)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)number),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, 128) < 0)
        die("port %d", number);
    return fd;
}

int main(int argc, char **argv)
{
    struct epoll_event events[64], e = { .events = EPOLLIN };
    int o, timeout_ms = -1;

    while ((o = getopt(argc, argv, "l:d:")) != -1) {
        switch (o) {
        case 'l': port = atoi(optarg); break;
        case 'd': dir = optarg; break;
        default: return 2;
        }
    }
    signal(SIGPIPE, SIG_IGN);
    int listener = listen_on(port);
    ep = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(ep, EPOLL_CTL_ADD, listener, &e);
    for (;;) {
        int n = epoll_wait(ep, events, ARRAY_LEN(events), timeout_ms);
        for (int i = 0; i < n; i++) {
            struct conn *c = events[i].data.ptr;
            if (c == NULL) {
                conn_accept(listener);
                continue;
            }
            int rc = 0;
            if ((events[i].events & EPOLLOUT) != 0)
                rc = conn_flush(c);
            if (rc == 0 && (events[i].events & ~(uint32_t)EPOLLOUT) != 0)
                rc = conn_read(c);
            else if (rc == 0)
                rc = conn_work(c);
            if (rc < 0)
                conn_drop(c);
        }
        timeout_ms = wake_waiting();
    }
}
