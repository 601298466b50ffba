/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole broker in this process and a client that blocks: starting on a free port and a directory of its own, stopping,
 * starting again on what is there, and sending structs through real sockets. Whatever goes wrong here fails the test at
 * once.
 */
#include "rig.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/meta/cluster.h"
#include "daemon/server/server.h"
#include "lib/base/fsutil.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/loop/exec.h"
#include "lib/loop/thread.h"
#include "lib/store/io.h"
#include "lib/store/plog_check.h"

enum { RECEIVE_TIMEOUT_S = 20 };

/* ---- the broker ---- */
static void set(struct rig *g, const char *key, const char *value)
{
    char err[256] = "";
    if (broker_config_set(&g->b.config, key, value, err, sizeof err) < 0)
        fail_msg("%s", err);
}

static void find_port(struct rig *g)
{
    struct bytebuf addresses = { 0 };
    server_addresses(g->b.server, &addresses);
    g->port = atoi(strrchr(bytebuf_cstr(&addresses), ':') + 1);
    bytebuf_done(&addresses);
    assert_true(g->port > 0);
}

void rig_start_in(struct rig *g, const struct store_io *io, int n_dirs, const char *const *overrides)
{
    char err[512] = "";
    struct bytebuf dirs = { 0 };
    for (int i = 0; i < n_dirs; i++)
        bytebuf_printf(&dirs, "%s%s/data%d", i == 0 ? "" : ",", g->dir, i);
    snprintf(g->dirs, sizeof g->dirs, "%s", bytebuf_cstr(&dirs));
    bytebuf_done(&dirs);
    plog_after_call = plog_check;
    world_init_real(&g->world);
    g->world.io = io != NULL ? io : &store_io_real;
    g->b = (struct broker){ .world = &g->world };
    log_set_level(LOG_LEVEL_ERROR + 1);
    signal(SIGPIPE, SIG_IGN);
    broker_config_init(&g->b.config);
    set(g, "log.dirs", g->dirs);
    set(g, "listeners", "PLAINTEXT://127.0.0.1:0");
    set(g, "log.level", "error");
    set(g, "num.network.threads", "2");
    set(g, "num.io.threads", "2");
    for (int i = 0; overrides != NULL && overrides[i] != NULL; i += 2)
        set(g, overrides[i], overrides[i + 1]);
    if (broker_start(&g->b, err, sizeof err) < 0)
        fail_msg("%s", err);
    find_port(g);
}

void rig_make_dir(struct rig *g)
{
    test_dir_make(g->dir, sizeof g->dir, "klog-rig");
}

void rig_start_on(struct rig *g, const struct store_io *io, int n_dirs, const char *const *overrides)
{
    rig_make_dir(g);
    rig_start_in(g, io, n_dirs, overrides);
}

void rig_start(struct rig *g, const char *const *overrides)
{
    rig_start_on(g, NULL, 1, overrides);
}

bool rig_stop(struct rig *g)
{
    bool clean = broker_stop(&g->b);
    broker_config_done(&g->b.config);
    return clean;
}

void rig_restart(struct rig *g, const char *const *overrides)
{
    assert_true(rig_stop(g));
    rig_start_in(g, NULL, 1, overrides);
}

void rig_remove(struct rig *g)
{
    assert_int_equal(fs_remove_tree(AT_FDCWD, g->dir), 0);
}

void rig_done(struct rig *g)
{
    assert_true(rig_stop(g));
    rig_remove(g);
}

/* ---- topics ---- */
struct change_wait {
    sem_t done;
    enum kerr err;
    char text[256];
};

static void change_done(struct cluster_change *ch, enum kerr err, const char *text)
{
    struct change_wait *w = ch->user;
    w->err = err;
    snprintf(w->text, sizeof w->text, "%s", text == NULL ? "" : text);
    sem_post(&w->done);
}

struct change_call {
    struct rig *rig;
    struct cluster_change *change;
    void (*f)(struct cluster *c, struct cluster_change *ch);
};

static void change_on_loop(void *arg)
{
    struct change_call *call = arg;
    call->f(call->rig->b.cluster, call->change);
}

static void change_and_wait(struct rig *g, struct cluster_change *ch,
                            void (*f)(struct cluster *, struct cluster_change *))
{
    struct change_wait w = { 0 };
    struct change_call call = { g, ch, f };
    sem_init(&w.done, 0, 0);
    ch->loop = g->b.loops[0];
    ch->cb = change_done;
    ch->user = &w;
    loop_call(g->b.loops[0], change_on_loop, &call);
    while (sem_wait(&w.done) < 0)
        ;
    if (w.err != KERR_NONE)
        fail_msg("%s: %s", kerr_name(w.err), w.text);
    sem_destroy(&w.done);
}

void rig_create_topic(struct rig *g, const char *name, int32_t partitions, const char *const *entries)
{
    struct cluster_change *ch = cluster_change_new(kstr_of(name));
    ch->n_partitions = partitions;
    ch->replication_factor = 1;
    for (int i = 0; entries != NULL && entries[i] != NULL; i += 2)
        cluster_change_add_op(ch, CONFIG_OP_SET, kstr_of(entries[i]), kstr_of(entries[i + 1]));
    change_and_wait(g, ch, cluster_create_topic);
}

void rig_delete_topic(struct rig *g, const char *name)
{
    change_and_wait(g, cluster_change_new(kstr_of(name)), cluster_delete_topic);
}

struct partition *rig_partition(struct rig *g, const char *topic, int32_t id)
{
    struct partition *pt = partitions_get(g->b.partitions, kstr_of(topic), id);
    assert_non_null(pt);
    return pt;
}

/* ---- the client ---- */
int peer_open(struct rig *g)
{
    struct sockaddr_in in = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)g->port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct timeval limit = { .tv_sec = RECEIVE_TIMEOUT_S };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
    return fd;
}

void peer_send_bytes(int fd, const void *p, size_t n)
{
    assert_int_equal(fs_write_all(fd, p, n), 0);
}

void peer_send(int fd, const struct wire_message *m, int version, int32_t correlation, const void *body)
{
    struct wire_out out = { 0 };
    const char *field = NULL;
    struct wire_request_header h = { .api_key = m->api_key,
                                     .api_version = (int16_t)version,
                                     .correlation_id = correlation,
                                     .client_id = kstr_of("rig") };
    wire_request_header_write(&h, &out);
    if (wire_encode(m, version, body, &out, &field) < 0)
        fail_msg("%s v%d: field %s", m->name, version, field);
    assert_int_equal(out.n_gaps, 0);
    wire_frame_close(&out);
    peer_send_bytes(fd, out.b.p, out.b.n);
    wire_out_done(&out);
}

static bool receive_all(int fd, uint8_t *p, size_t n)
{
    while (n > 0) {
        ssize_t k = recv(fd, p, n, 0);
        if (k < 0 && errno == ECONNRESET)
            return false;
        if (k < 0)
            fail_msg("receive: %s", strerror(errno));
        if (k == 0)
            return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

bool peer_receive(int fd, int32_t *ret_correlation, struct bytebuf *ret)
{
    uint8_t size[4];
    *ret = (struct bytebuf){ 0 };
    if (!receive_all(fd, size, sizeof size))
        return false;
    size_t n = get_be32(size);
    assert_true(n >= 4);
    assert_true(receive_all(fd, bytebuf_extend(ret, n), n));
    *ret_correlation = (int32_t)get_be32(ret->p);
    return true;
}

void *peer_reply(int fd, const struct wire_message *m, int version, int32_t correlation, struct arena *a)
{
    struct bytebuf b;
    struct slice body;
    int32_t got;
    if (!peer_receive(fd, &got, &b))
        fail_msg("%s: the connection ended", m->name);
    assert_int_equal(got, correlation);
    uint8_t *frame = arena_dup(a, b.p, b.n); /* the struct points into it */
    assert_int_equal(
        wire_response_header_read(m->api_key, (int16_t)version, slice_of(frame, b.n), &got, &body), 0);
    bytebuf_done(&b);
    void *rsp = arena_alloc(a, wire_msg_size(m));
    assert_int_equal(wire_decode(m, version, body, a, rsp), 0);
    return rsp;
}

void *peer_ask(int fd, const struct wire_message *q, const struct wire_message *a, int version,
               const void *body, struct arena *arena)
{
    peer_send(fd, q, version, 77, body);
    return peer_reply(fd, a, version, 77, arena);
}

/* ---- bodies ---- */
void make_batch(struct bytebuf *ret, const char *value, int n, int64_t timestamp)
{
    struct batch_builder bb;
    struct batch_producer none = { .id = -1, .epoch = -1, .base_sequence = -1 };
    batch_builder_init(&bb);
    for (int i = 0; i < n; i++) {
        char text[128];
        snprintf(text, sizeof text, "%s-%d", value, i);
        batch_builder_add(&bb, timestamp, KSTR_NULL, kstr_of(text), NULL, 0);
    }
    assert_int_equal(batch_builder_finish(&bb, CODEC_NONE, 0, &none, 0, ret), 0);
    batch_builder_done(&bb);
}

void peer_produce_begin(int fd, int version, const char *topic, int16_t acks, const struct bytebuf *records)
{
    struct produce_request_partition_data part = { .records = { .p = records->p, .n = (int32_t)records->n } };
    struct produce_request_topic_data data = { .name = kstr_of(topic),
                                               .partition_data = &part,
                                               .n_partition_data = 1 };
    struct produce_request q = { .transactional_id = KSTR_NULL,
                                 .acks = acks,
                                 .timeout_ms = 10000,
                                 .topic_data = &data,
                                 .n_topic_data = 1 };
    peer_send(fd, &wire_produce_request, version, 1, &q);
}

struct produce_response_partition_responses *peer_produce_end(int fd, int version, struct arena *a)
{
    struct produce_response *rsp = peer_reply(fd, &wire_produce_response, version, 1, a);
    assert_int_equal(rsp->n_responses, 1);
    assert_int_equal(rsp->responses[0].n_partition_responses, 1);
    return &rsp->responses[0].partition_responses[0];
}

struct produce_response_partition_responses *peer_produce(int fd, int version, const char *topic,
                                                          int16_t acks, const struct bytebuf *records,
                                                          struct arena *a)
{
    peer_produce_begin(fd, version, topic, acks, records);
    return acks == 0 ? NULL : peer_produce_end(fd, version, a);
}

struct fetch_request *fetch_one(struct arena *a, const char *topic, int64_t offset, int32_t max_wait_ms)
{
    struct fetch_request *q = arena_alloc(a, sizeof *q);
    wire_defaults(&wire_fetch_request, q);
    q->max_wait_ms = max_wait_ms;
    q->min_bytes = 1;
    q->max_bytes = 50 * 1024 * 1024;
    q->topics = arena_array(a, 1, sizeof *q->topics);
    q->n_topics = 1;
    q->topics[0].topic = kstr_of(topic);
    q->topics[0].partitions = arena_array(a, 1, sizeof *q->topics[0].partitions);
    q->topics[0].n_partitions = 1;
    q->topics[0].partitions[0] = (struct fetch_request_partitions){
        .fetch_offset = offset,
        .current_leader_epoch = -1,
        .last_fetched_epoch = -1,
        .log_start_offset = -1,
        .partition_max_bytes = 1024 * 1024,
    };
    return q;
}

struct fetch_response_partitions *peer_fetch(int fd, int version, const struct fetch_request *q,
                                             struct arena *a)
{
    struct fetch_response *rsp = peer_ask(fd, &wire_fetch_request, &wire_fetch_response, version, q, a);
    assert_int_equal(rsp->error_code, 0);
    assert_int_equal(rsp->session_id, 0);
    assert_int_equal(rsp->n_responses, 1);
    assert_int_equal(rsp->responses[0].n_partitions, 1);
    return &rsp->responses[0].partitions[0];
}

int64_t peer_offset(int fd, const char *topic, int64_t timestamp)
{
    struct arena a;
    arena_init(&a);
    struct list_offsets_request_partitions part = { .current_leader_epoch = -1, .timestamp = timestamp };
    struct list_offsets_request_topics t = { .name = kstr_of(topic), .partitions = &part, .n_partitions = 1 };
    struct list_offsets_request q = { .replica_id = -1, .topics = &t, .n_topics = 1 };
    struct list_offsets_response *rsp =
        peer_ask(fd, &wire_list_offsets_request, &wire_list_offsets_response, 9, &q, &a);
    const struct list_offsets_response_partitions *p = &rsp->topics[0].partitions[0];
    int64_t answer = p->error_code != 0 ? -1000 - p->error_code : p->offset;
    arena_done(&a);
    return answer;
}
