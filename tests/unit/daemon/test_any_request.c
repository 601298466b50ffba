/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of every API and version, well made and badly made, against a whole broker whose topics, groups, members and
 * settings come, change and go by them, that retains and compacts all the time, and is stopped and started
 * again. What must hold: every request is answered in order, in its version's layout, with error codes that
 * Kafka has, and within bounds; a connection ends only for what no client should send; every stop is clean.
 * Sanitizers judge the rest.
 *
 *   REQUESTS=1000000 SEED=7 test_any_request        the seed gives the same requests, but for ids from answers
 *   REQUESTS_TRACE=FILE                             each as a line before it is sent: the last are those of a crash
 */
#include "rig.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/api/api.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/store/io.h"
#include "request_maker.h"

enum {
    N_PEERS = 12,
    IN_FLIGHT_MAX = 8,
    STEPS_BEFORE_A_RESTART = 2500,
    ANSWER_BYTES_MAX = 64 * 1024 * 1024,
    PATIENCE_MS = 120000, /* an answer that must come has come by then, under every sanitizer */
    PARKED_MS = 20,       /* one that may wait for something is not waited for any longer */
    TRACE_LINE_MAX = 4000,
};

struct asked {
    const struct wire_api *api;
    int16_t version;
    int32_t correlation;
    bool silent_ok; /* acks=0, or changed so that it may be */
    bool close_ok;  /* the broker may end the connection over it */
};

struct peer {
    int fd;
    struct bytebuf out, in;
    struct asked asked[IN_FLIGHT_MAX];
    int n_asked;
    int64_t waits_since_ms; /* of the first of them */
};

static struct rig g;
static struct store_io io;
static struct request_maker maker;
static struct peer peers[N_PEERS];
static uint64_t n_answers, n_closed, n_parked, answered[64];
static size_t largest_answer;
static int32_t correlation;
static FILE *trace;

static const char *const settings[] = {
    "offsets.topic.num.partitions", "3",
    "group.initial.rebalance.delay.ms", "0",
    "group.min.session.timeout.ms", "1",
    "group.max.size", "20",
    "offsets.retention.check.interval.ms", "50",
    "log.segment.bytes", "16384",
    "log.retention.check.interval.ms", "50",
    "log.cleaner.backoff.ms", "20",
    "log.cleaner.dedupe.buffer.size", "1048576",
    "log.cleaner.min.cleanable.ratio", "0",
    "producer.id.expiration.ms", "1000",
    NULL,
};

/* ---- connections ---- */
static void peer_begin(struct peer *p)
{
    p->fd = peer_open(&g);
    assert_int_equal(fcntl(p->fd, F_SETFL, O_NONBLOCK), 0);
    p->n_asked = 0;
}

static void peer_end(struct peer *p)
{
    close(p->fd);
    bytebuf_done(&p->out);
    bytebuf_done(&p->in);
    p->n_asked = 0;
}

static void peer_renew(struct peer *p)
{
    peer_end(p);
    peer_begin(p);
}

static void forget_first(struct peer *p)
{
    memmove(p->asked, p->asked + 1, sizeof p->asked[0] * (size_t)--p->n_asked);
    p->waits_since_ms = clock_mono_ms();
}

/* ---- answers ---- */
/* What ApiVersions says to a version that it does not know is in the layout of version 0. */
static void judge_answer(const struct asked *q, struct slice frame, bool unknown_version)
{
    int version = unknown_version ? 0 : q->version;
    struct arena a;
    struct slice body;
    int32_t id;

    arena_init(&a);
    assert_int_equal(wire_response_header_read(q->api->key, (int16_t)version, frame, &id, &body), 0);
    void *rsp = arena_alloc(&a, wire_msg_size(q->api->response));
    if (wire_decode(q->api->response, version, body, &a, rsp) < 0)
        fail_msg("%s v%d: the answer does not parse", q->api->name, version);
    int bad = maker_look_at(&maker, q->api->response, version, rsp);
    if (bad != 0)
        fail_msg("%s v%d: answered with error %d, which Kafka does not have", q->api->name, version, bad);
    for (size_t i = 0; api_at(i) != NULL; i++)
        answered[i] += api_at(i)->key == q->api->key;
    arena_done(&a);
}

static void on_answer(struct peer *p, struct slice frame)
{
    int32_t id = (int32_t)get_be32(frame.p);

    while (p->n_asked > 0 && p->asked[0].correlation != id) {
        if (!p->asked[0].silent_ok)
            fail_msg("%s v%d was skipped", p->asked[0].api->name, p->asked[0].version);
        forget_first(p);
    }
    if (p->n_asked == 0)
        fail_msg("an answer that nobody asked for: %d", id);
    const struct asked *q = &p->asked[0];
    const struct api *served = api_find(q->api->key);
    judge_answer(q, frame, served == NULL || q->version > served->max_version);
    forget_first(p);
    n_answers++;
    largest_answer = MAX(largest_answer, frame.n);
}

static void take_answers(struct peer *p)
{
    size_t at = 0;

    while (p->in.n - at >= 4) {
        size_t n = get_be32(p->in.p + at);
        assert_in_range(n, 4, ANSWER_BYTES_MAX);
        if (p->in.n - at - 4 < n)
            break;
        on_answer(p, slice_of(p->in.p + at + 4, n));
        at += 4 + n;
    }
    bytebuf_consume(&p->in, at);
}

static void on_closed(struct peer *p)
{
    bool may = false;

    for (int i = 0; i < p->n_asked; i++)
        may = may || p->asked[i].close_ok;
    if (!may)
        fail_msg("the connection ended, at %s v%d, %d asked", p->n_asked == 0 ? "nothing" : p->asked[0].api->name,
                 p->n_asked == 0 ? 0 : p->asked[0].version, p->n_asked);
    n_closed++;
    peer_renew(p);
}

static void peer_read(struct peer *p)
{
    ssize_t n = recv(p->fd, bytebuf_room(&p->in, 65536), 65536, 0);

    if (n > 0) {
        p->in.n += (size_t)n;
        take_answers(p);
    } else if (n == 0 || errno != EAGAIN) {
        on_closed(p);
    }
}

static void peer_write(struct peer *p)
{
    ssize_t n = send(p->fd, p->out.p, p->out.n, MSG_NOSIGNAL);

    if (n > 0)
        bytebuf_consume(&p->out, (size_t)n);
    else if (errno != EAGAIN)
        on_closed(p);
}

static bool may_park(const struct asked *q)
{
    return q->api->key == API_JOIN_GROUP || q->api->key == API_SYNC_GROUP || q->api->key == API_FETCH ||
           q->api->key == API_KLOG_STAT || q->silent_ok;
}

/* Gives up what waits for other members or for records; what must be answered is waited for. */
static void look_at_clock(struct peer *p)
{
    if (p->n_asked == 0)
        return;
    int64_t waited = clock_mono_ms() - p->waits_since_ms;
    if (may_park(&p->asked[0]) ? waited > PARKED_MS : false) {
        n_parked++;
        peer_renew(p);
    } else if (waited > PATIENCE_MS) {
        fail_msg("%s v%d is not answered", p->asked[0].api->name, p->asked[0].version);
    }
}

static void pump(int wait_ms)
{
    struct pollfd fds[N_PEERS];

    for (int i = 0; i < N_PEERS; i++)
        fds[i] = (struct pollfd){ peers[i].fd, (short)(POLLIN | (peers[i].out.n > 0 ? POLLOUT : 0)), 0 };
    poll(fds, N_PEERS, wait_ms);
    for (int i = 0; i < N_PEERS; i++) {
        if (fds[i].revents & POLLOUT)
            peer_write(&peers[i]);
        if (peers[i].fd == fds[i].fd && (fds[i].revents & (POLLIN | POLLHUP | POLLERR)))
            peer_read(&peers[i]);
        look_at_clock(&peers[i]);
    }
}

/* ---- requests ---- */
static void note(const struct peer *p, const struct asked *q, const void *body, const char *what)
{
    struct bytebuf json = { 0 };

    if (trace == NULL)
        return;
    if (body != NULL)
        wire_print_json(q->api->request, q->version, body, &json);
    fprintf(trace, "%d %td %s %d%s %.*s\n", q->correlation, p - peers, q->api->name, q->version, what,
            (int)MIN(json.n, (size_t)TRACE_LINE_MAX), (const char *)json.p);
    fflush(trace);
    bytebuf_done(&json);
}

static void ask(struct peer *p, const struct asked *q, const void *frame, size_t n)
{
    bytebuf_add(&p->out, frame, n);
    if (p->n_asked == 0)
        p->waits_since_ms = clock_mono_ms();
    p->asked[p->n_asked++] = *q;
}

/* Some APIs more often than others, so that there is something to ask about. */
static const struct api *choose_api(void)
{
    static const int16_t often[] = { API_PRODUCE, API_PRODUCE, API_PRODUCE, API_FETCH, API_JOIN_GROUP,
                                     API_JOIN_GROUP, API_SYNC_GROUP, API_OFFSET_COMMIT, API_CREATE_TOPICS };
    size_t n = 0;

    if (maker_once_in(&maker, 2))
        return api_find(often[maker_below(&maker, ARRAY_LEN(often))]);
    while (api_at(n) != NULL)
        n++;
    return api_at(maker_below(&maker, (uint32_t)n));
}

static void write_header(const struct asked *q, struct wire_out *out)
{
    static char longest[32767];
    struct wire_request_header h = { .api_key = q->api->key,
                                     .api_version = q->version,
                                     .correlation_id = q->correlation,
                                     .client_id = kstr_of("any") };

    if (maker_once_in(&maker, 20))
        h.client_id = maker_once_in(&maker, 2) ? KSTR_NULL : kstr_bytes(longest, sizeof longest);
    wire_request_header_write(&h, out);
}

/* Bytes after the header are changed, cut, or added. */
static void spoil(struct wire_out *out, size_t header)
{
    for (uint32_t n = 1 + maker_below(&maker, 3); n > 0 && out->b.n > header; n--) {
        size_t at = header + maker_next(&maker) % (out->b.n - header);
        switch (maker_below(&maker, 6)) {
        case 0:
            out->b.n = at;
            break;
        case 1:
            bytebuf_add(&out->b, "\xff\xff\xff\xff\x7f\x00\x01", 1 + maker_below(&maker, 7));
            break;
        case 2:
            out->b.p[at] = (uint8_t)(maker_once_in(&maker, 2) ? 0xff : 0x7f);
            break;
        case 3:
            out->b.p[at] ^= (uint8_t)(1u << maker_below(&maker, 8));
            break;
        default:
            out->b.p[at] = (uint8_t)maker_next(&maker);
        }
    }
}

static bool is_silent(const struct asked *q, const void *body)
{
    return q->api->key == API_PRODUCE && ((const struct produce_request *)body)->acks == 0;
}

/* Versions and keys that are not served: the connection ends, but for ApiVersions, which answers. */
static void send_unserved(struct peer *p)
{
    bool versions = maker_once_in(&maker, 2);
    struct asked q = { wire_api_find(API_API_VERSIONS), (int16_t)(5 + maker_below(&maker, 1000)), correlation++,
                       false, !versions };
    uint8_t frame[4 + 11] = { 0 };

    put_be32(frame, sizeof frame - 4);
    put_be16(frame + 4, versions ? API_API_VERSIONS : (uint16_t)maker_next(&maker));
    put_be16(frame + 6, (uint16_t)q.version);
    put_be32(frame + 8, (uint32_t)q.correlation);
    put_be16(frame + 12, (uint16_t)-1);
    note(p, &q, NULL, " of an API or version that is not served");
    ask(p, &q, frame, sizeof frame);
}

/* Bytes that are no request at all. */
static void send_noise(struct peer *p)
{
    uint8_t noise[64];

    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)maker_next(&maker);
    put_be32(noise, maker_once_in(&maker, 3) ? 0x7fffffffu : maker_once_in(&maker, 2) ? 0xffffffffu : 60u);
    struct asked q = { wire_api_find(API_API_VERSIONS), 0, correlation++, true, true };
    note(p, &q, NULL, " replaced by noise");
    ask(p, &q, noise, 4 + maker_below(&maker, 60));
    peer_write(p);
    peer_renew(p);
}

static void send_request(struct peer *p)
{
    const struct api *served = choose_api();
    struct asked q = { .api = wire_api_find(served->key), .correlation = correlation++ };
    struct wire_out out = { 0 };
    struct arena a;

    q.version = (int16_t)(served->min_version +
                          (int)maker_below(&maker, (uint32_t)(served->max_version - served->min_version) + 1));
    arena_init(&a);
    void *body = maker_body(&maker, q.api->request, q.version, &a);
    bool spoiled = maker_once_in(&maker, 16);
    q.silent_ok = is_silent(&q, body) || (spoiled && q.api->key == API_PRODUCE);
    q.close_ok = q.silent_ok || spoiled;
    note(p, &q, body, spoiled ? " spoiled" : "");
    write_header(&q, &out);
    size_t header = out.b.n;
    const char *field = NULL;
    if (wire_encode(q.api->request, q.version, body, &out, &field) < 0)
        fail_msg("%s v%d: field %s cannot be encoded", q.api->name, q.version, field);
    if (spoiled)
        spoil(&out, header);
    wire_frame_close(&out);
    ask(p, &q, out.b.p, out.b.n);
    wire_out_done(&out);
    arena_done(&a);
}

static void step(void)
{
    struct peer *p = &peers[maker_below(&maker, N_PEERS)];

    if (p->n_asked == IN_FLIGHT_MAX) {
        pump(1);
        return;
    }
    if (maker_once_in(&maker, 200))
        send_noise(p);
    else if (maker_once_in(&maker, 100))
        send_unserved(p);
    else
        send_request(p);
    pump(0);
}

static bool all_answered(void)
{
    for (int i = 0; i < N_PEERS; i++)
        if (peers[i].n_asked > 0 || peers[i].out.n > 0)
            return false;
    return true;
}

/* ---- the broker ---- */
static int no_sync(const struct store_io *unused, int fd)
{
    (void)unused, (void)fd;
    return 0;
}

static void begin(void)
{
    rig_start_in(&g, &io, 1, settings);
    for (int i = 0; i < N_PEERS; i++)
        peer_begin(&peers[i]);
}

/* Every second time with requests under way. */
static void end(bool quietly)
{
    while (quietly && !all_answered())
        pump(10);
    for (int i = 0; i < N_PEERS; i++)
        peer_end(&peers[i]);
    assert_true(rig_stop(&g));
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *s = getenv(name);
    return s == NULL ? otherwise : strtoull(s, NULL, 10);
}

static void any_request_is_answered_or_refused(void **state)
{
    (void)state;
    uint64_t total = from_environment("REQUESTS", 6000);
    struct rusage used;

    maker.seed = from_environment("SEED", 1);
    printf("SEED=%ju REQUESTS=%ju\n", (uintmax_t)maker.seed, (uintmax_t)total);
    fflush(stdout);
    if (getenv("REQUESTS_TRACE") != NULL)
        trace = fopen(getenv("REQUESTS_TRACE"), "w");
    io = store_io_real;
    io.fsync = io.fdatasync = io.syncfs = no_sync;
    rig_make_dir(&g);
    begin();
    for (uint64_t next_end = STEPS_BEFORE_A_RESTART; (uint64_t)correlation < total;) {
        step();
        if ((uint64_t)correlation >= next_end) {
            end(next_end / STEPS_BEFORE_A_RESTART % 2 == 0);
            begin();
            next_end += STEPS_BEFORE_A_RESTART;
        }
    }
    end(true);
    rig_remove(&g);
    getrusage(RUSAGE_SELF, &used);
    printf("%d requests, %ju answers (largest %zu bytes), %ju connections closed by the broker, %ju given up, peak "
           "memory %ld kB\n",
           correlation, (uintmax_t)n_answers, largest_answer, (uintmax_t)n_closed, (uintmax_t)n_parked, used.ru_maxrss);
    for (size_t i = 0; api_at(i) != NULL; i++) {
        if (answered[i] == 0)
            fail_msg("API %d was never answered", api_at(i)->key);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_request_is_answered_or_refused),
    };
    return RUN(tests);
}
