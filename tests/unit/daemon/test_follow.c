/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replication between brokers of this process, over real sockets: the test plays the register, and tells each broker the
 * state of one partition that all of them host. What is waited for is always an answer, or a state of a replica.
 */
#include "rig.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "daemon/follow/follow.h"
#include "daemon/replica/partition_follow.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/record/iter.h"
#include "lib/store/plog.h"
#include "tests/sim/rand.h"

enum { NODES = 3, WRITES_MAX = 3000 };
#define TOPIC "copied"

struct node {
    struct rig g;
    int32_t id;
    int64_t be; /* broker epoch */
    struct follow *follow;
    struct partition *pt; /* a reference */
    bool runs;
};

static struct node nodes[NODES];
static struct partition_state now; /* what the register has */
static struct uuid topic_id;
static const char *const *entries; /* of the topic */

/* ---- brokers ---- */
static int64_t epoch_of(void *arg)
{
    const struct node *n = arg;
    return n->be;
}

static struct topic_config *config_of(struct node *n)
{
    struct topic_config_entry e[8];
    size_t k = 0;
    char err[256] = "";

    for (; entries != NULL && entries[2 * k] != NULL; k++)
        e[k] = (struct topic_config_entry){ (char *)(uintptr_t)entries[2 * k], (char *)(uintptr_t)entries[2 * k + 1] };
    struct topic_config *c = topic_config_new(&n->g.b.config, e, k, err, sizeof err);
    if (c == NULL)
        fail_msg("%s", err);
    return c;
}

static bool lost_directory; /* of the partition: whoever starts had one */

static void host(struct node *n)
{
    struct topic_config *cfg = config_of(n);
    const struct partition_new new = { .id = 0, .st = &now, .at_start = lost_directory, .was_here = lost_directory };

    partitions_set_broker_epoch(n->g.b.partitions, n->be);
    assert_int_equal(partitions_add(n->g.b.partitions, TOPIC, &topic_id, cfg, &new, 1), 0);
    topic_config_unref(cfg);
    n->pt = rig_partition(&n->g, TOPIC, 0);
}

static void follow_start(struct node *n)
{
    const struct follow_deps deps = {
        .world = &n->g.world,
        .config = &n->g.b.config,
        .me = n->id,
        .broker_epoch = epoch_of,
        .arg = n,
    };
    n->follow = follow_new(&deps);
    assert_non_null(n->follow);
}

static void node_start(int i)
{
    struct node *n = &nodes[i];
    char id[12];
    const char *const overrides[] = { "broker.id", id, "replica.fetch.backoff.ms", "50", NULL };

    n->id = i + 1;
    n->be += 10;
    snprintf(id, sizeof id, "%d", n->id);
    rig_start(&n->g, overrides);
    follow_start(n);
    host(n);
    n->runs = true;
}

static void node_stop(int i)
{
    struct node *n = &nodes[i];

    follow_stop(n->follow);
    partition_unref(n->pt);
    assert_true(rig_stop(&n->g));
    follow_free(n->follow);
    n->runs = false;
}

static void nodes_start(int n, const char *const *topic_entries)
{
    memset(nodes, 0, sizeof nodes);
    entries = topic_entries;
    uuid_random(&random_real, &topic_id);
    now = (struct partition_state){ .leader = -1, .leader_epoch = 0, .version = 0 };
    for (int i = 0; i < n; i++) {
        now.replicas[now.n_replicas++] = i + 1;
        now.isr[now.n_isr++] = i + 1;
        now.isr_be[i] = 10;
    }
    for (int i = 0; i < n; i++)
        node_start(i);
}

static void nodes_stop(void)
{
    for (int i = 0; i < NODES; i++) {
        if (nodes[i].runs)
            node_stop(i);
        if (nodes[i].g.dir[0] != '\0')
            rig_remove(&nodes[i].g);
    }
}

/* ---- the register ---- */
static void tell_node(struct node *n)
{
    partition_set_state(n->pt, &now);
    if (now.leader == n->id || now.leader < 0) {
        follow_stop_partition(n->follow, n->pt);
        return;
    }
    const struct follow_leader leader = { now.leader, "127.0.0.1", nodes[now.leader - 1].g.port };
    follow_partition(n->follow, n->pt, &leader);
}

static void tell_all(void)
{
    for (int i = 0; i < NODES; i++)
        if (nodes[i].runs)
            tell_node(&nodes[i]);
}

static void set_leader(int i)
{
    now.leader = i + 1;
    now.leader_be = nodes[i].be;
    now.leader_epoch++;
    now.version++;
}

static void set_isr(int n, ...)
{
    va_list ap;

    va_start(ap, n);
    now.n_isr = n;
    for (int i = 0; i < n; i++) {
        int k = va_arg(ap, int);
        now.isr[i] = k + 1;
        now.isr_be[i] = nodes[k].be;
    }
    va_end(ap);
    now.version++;
}

static void lead(int i)
{
    set_leader(i);
    tell_all();
}

/* ---- looking ---- */
static struct replica replica_of(int i)
{
    struct partition *pt = nodes[i].pt;
    lock_take(&pt->mu);
    struct replica r = pt->replica;
    lock_release(&pt->mu);
    return r;
}

static struct plog_ends ends_of(int i)
{
    struct plog_ends e;
    plog_ends(nodes[i].pt->log, &e);
    return e;
}

static void nap(void)
{
    const struct timespec ms = { .tv_nsec = 1000000 };
    nanosleep(&ms, NULL);
}

#define wait_until(condition)                                                                                          \
    do {                                                                                                               \
        for (int64_t until_ = clock_mono_ms() + 120000; !(condition);) {                                                \
            if (clock_mono_ms() > until_)                                                                              \
                fail_msg("%s did not come about", #condition);                                                         \
            nap();                                                                                                     \
        }                                                                                                              \
    } while (0)

/* One batch of n records; the answer's error. */
static int produce(int i, int16_t acks, const char *value, int n, int64_t *ret_offset)
{
    struct bytebuf b = { 0 };
    struct arena a;
    int fd = peer_open(&nodes[i].g);

    arena_init(&a);
    make_batch(&b, value, n, clock_wall_ms());
    const struct produce_response_partition_responses *p = peer_produce(fd, 9, TOPIC, acks, &b, &a);
    int err = p->error_code;
    if (ret_offset != NULL)
        *ret_offset = p->base_offset;
    arena_done(&a);
    bytebuf_done(&b);
    close(fd);
    return err;
}

static void read_log(int i, int64_t from, struct bytebuf *ret)
{
    int64_t end = ends_of(i).end_offset;

    ret->n = 0;
    while (from < end) {
        struct plog_span s;
        struct batch_header h;
        assert_int_equal(plog_read_to_copy(nodes[i].pt->log, from, end, 1, true, &s), 0);
        assert_true(s.n > 0);
        uint8_t *p = bytebuf_extend(ret, (size_t)s.n);
        assert_int_equal(plog_span_read(&s, p), 0);
        plog_span_release(&s);
        batch_header_read(p, &h);
        from = batch_last_offset(&h) + 1;
    }
}

/* Both have the same batches from `from` on, to the same end. */
static void assert_same_logs(int i, int k, int64_t from)
{
    CLEANUP(bytebuf_done) struct bytebuf a = { 0 };
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };

    assert_int_equal(ends_of(i).end_offset, ends_of(k).end_offset);
    read_log(i, from, &a);
    read_log(k, from, &b);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.p, b.p, a.n);
}

/* ---- tests ---- */
static void acks_all_is_answered_when_the_follower_has_it(void **state)
{
    (void)state;
    int64_t offset;

    nodes_start(2, NULL);
    lead(0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(produce(0, -1, "all", 3, &offset), 0);
        assert_int_equal(offset, 3 * i);
        assert_int_equal(ends_of(1).flushed_offset, offset + 3); /* policy commit */
        assert_int_equal(replica_of(0).hw, offset + 3);
    }
    assert_same_logs(0, 1, 0);
    wait_until(replica_of(1).hw == 60); /* with an answer that had to wait */
    assert_int_equal(produce(1, -1, "all", 1, NULL), KERR_NOT_LEADER_OR_FOLLOWER);
    nodes_stop();
}

static void without_the_follower_nothing_is_committed(void **state)
{
    (void)state;
    int64_t offset;

    nodes_start(2, NULL);
    set_leader(0);
    partition_set_state(nodes[0].pt, &now); /* the follower does not know yet */
    assert_int_equal(produce(0, 1, "one", 3, &offset), 0);
    assert_int_equal(replica_of(0).hw, 0);
    assert_int_equal(ends_of(1).end_offset, 0);
    tell_all();
    wait_until(replica_of(0).hw == 3);
    assert_same_logs(0, 1, 0);
    nodes_stop();
}

static void too_few_in_sync_are_told(void **state)
{
    (void)state;
    static const char *const two[] = { "min.insync.replicas", "2", NULL };

    nodes_start(2, two);
    lead(0);
    assert_int_equal(produce(0, -1, "x", 1, NULL), 0);
    set_isr(1, 0);
    tell_all();
    assert_int_equal(produce(0, -1, "x", 1, NULL), KERR_NOT_ENOUGH_REPLICAS);
    assert_int_equal(produce(0, 1, "x", 1, NULL), 0);
    nodes_stop();
}

/* The old leader has what nobody else got. In the new epoch it cuts that off, by epochs, and has the new one's log. */
static void what_parts_from_the_new_leader_is_cut(void **state)
{
    (void)state;
    nodes_start(3, NULL);
    lead(0);
    assert_int_equal(produce(0, -1, "committed", 5, NULL), 0);
    wait_until(ends_of(2).end_offset == 5);
    for (int i = 1; i < 3; i++) /* they hear nothing more of it */
        follow_stop_partition(nodes[i].follow, nodes[i].pt);
    set_leader(1);
    partition_set_state(nodes[1].pt, &now);
    partition_set_state(nodes[2].pt, &now);
    assert_int_equal(produce(0, 1, "lost", 4, NULL), 0);
    assert_int_equal(produce(0, 1, "lost", 4, NULL), 0);
    assert_int_equal(produce(1, 1, "kept", 2, NULL), 0);
    tell_all();
    wait_until(ends_of(0).end_offset == 7 && ends_of(2).end_offset == 7);
    assert_int_equal(produce(1, -1, "kept", 2, NULL), 0);
    assert_same_logs(1, 0, 0);
    assert_same_logs(1, 2, 0);
    assert_int_equal(plog_epoch_at(nodes[0].pt->log, 4), 1);
    assert_int_equal(plog_epoch_at(nodes[0].pt->log, 5), 2);
    assert_int_equal(replica_of(0).role, REPLICA_FETCHING);
    nodes_stop();
}

/* Leadership goes round while somebody writes with acks=all; nothing that was answered is lost. */
static void leaders_change_and_nothing_acknowledged_is_lost(void **state)
{
    (void)state;
    int64_t next = 0, offset;

    nodes_start(3, NULL);
    for (int turn = 0; turn < 12; turn++) {
        lead(turn % 3);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(produce(turn % 3, -1, "round", 2, &offset), 0);
            assert_int_equal(offset, next);
            next += 2;
        }
    }
    assert_same_logs(0, 1, 0);
    assert_same_logs(0, 2, 0);
    nodes_stop();
}

struct pause { /* of a loop */
    struct task task;
    sem_t begun, go_on;
};

static struct pause pauses[2]; /* of both loops of node 0 */

static void pause_here(struct task *t)
{
    struct pause *p = container_of(t, struct pause, task);
    sem_post(&p->begun);
    while (sem_wait(&p->go_on) < 0)
        ;
}

static void pause_node_0(void)
{
    assert_int_equal(nodes[0].g.b.n_loops, 2);
    for (int i = 0; i < 2; i++) {
        pauses[i] = (struct pause){ .task.cb = pause_here };
        sem_init(&pauses[i].begun, 0, 0);
        sem_init(&pauses[i].go_on, 0, 0);
        loop_post(nodes[0].g.b.loops[i], &pauses[i].task);
        while (sem_wait(&pauses[i].begun) < 0)
            ;
    }
}

static void go_on_node_0(void)
{
    for (int i = 0; i < 2; i++)
        sem_post(&pauses[i].go_on);
}

/* A leader waits for its follower, and loses its leadership and its records, all before its reactor looks again: the new
 * leader's records are committed at those offsets, and are not those that the client sent. */
static void what_another_leader_commits_at_the_offset_is_no_acknowledgement(void **state)
{
    (void)state;
    struct bytebuf b = { 0 };
    struct arena a;

    nodes_start(2, NULL);
    set_leader(0);
    partition_set_state(nodes[0].pt, &now); /* nobody follows */
    arena_init(&a);
    make_batch(&b, "mine", 3, clock_wall_ms());
    int fd = peer_open(&nodes[0].g);
    peer_produce_begin(fd, 9, TOPIC, -1, &b);
    wait_until(replica_of(0).leo == 3);
    pause_node_0();
    set_leader(1);
    tell_all();
    assert_int_equal(produce(1, -1, "theirs", 5, NULL), 0);
    wait_until(replica_of(0).hw == 5);
    go_on_node_0();
    assert_int_equal(peer_produce_end(fd, 9, &a)->error_code, KERR_NOT_LEADER_OR_FOLLOWER);
    assert_same_logs(0, 1, 0);
    close(fd);
    bytebuf_done(&b);
    arena_done(&a);
    nodes_stop();
}

/* It was committed by two, of which one is not there any more when the producer is answered. */
static void too_few_in_sync_after_the_append_are_told(void **state)
{
    (void)state;
    static const char *const two[] = { "min.insync.replicas", "2", NULL };
    struct live_broker alone = { .id = 1, .be = 10 };
    struct replica_tick tick = { .now_ms = clock_mono_ms(), .lag_max_ms = 30000, .live = &alone, .n_live = 1 };
    const struct partition_follower second = { .broker_id = 2, .broker_epoch = 10 };
    struct state_change change;
    struct bytebuf b = { 0 };
    struct arena a;

    nodes_start(2, two);
    set_leader(0);
    partition_set_state(nodes[0].pt, &now); /* nobody follows: the test does */
    arena_init(&a);
    make_batch(&b, "x", 3, clock_wall_ms());
    int fd = peer_open(&nodes[0].g);
    peer_produce_begin(fd, 9, TOPIC, -1, &b);
    wait_until(replica_of(0).fleo == 3);
    pause_node_0();
    partition_follower_fetched(nodes[0].pt, &second, 1, 3);
    assert_int_equal(replica_of(0).hw, 3);
    partition_tick(nodes[0].pt, &tick, &change);
    go_on_node_0();
    assert_int_equal(peer_produce_end(fd, 9, &a)->error_code, KERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND);
    assert_int_equal(produce(0, -1, "x", 1, NULL), KERR_NOT_ENOUGH_REPLICAS);
    close(fd);
    bytebuf_done(&b);
    arena_done(&a);
    nodes_stop();
}

static void a_producer_waits_no_longer_than_it_says(void **state)
{
    (void)state;
    struct bytebuf b = { 0 };
    struct arena a;

    nodes_start(2, NULL);
    set_leader(0);
    partition_set_state(nodes[0].pt, &now); /* nobody follows */
    arena_init(&a);
    make_batch(&b, "x", 3, clock_wall_ms());
    struct produce_request_partition_data part = { .records = { .p = b.p, .n = (int32_t)b.n } };
    struct produce_request_topic_data data = { .name = kstr_of(TOPIC), .partition_data = &part, .n_partition_data = 1 };
    struct produce_request q = { .transactional_id = KSTR_NULL, .acks = -1, .timeout_ms = 1, .topic_data = &data, .n_topic_data = 1 };
    int fd = peer_open(&nodes[0].g);
    peer_send(fd, &wire_produce_request, 9, 1, &q);
    assert_int_equal(peer_produce_end(fd, 9, &a)->error_code, KERR_REQUEST_TIMED_OUT);
    assert_int_equal(replica_of(0).hw, 0);
    close(fd);
    bytebuf_done(&b);
    arena_done(&a);
    nodes_stop();
}

/* Its partition is removed while it waits, and asked once more before it has left the table. */
static void wait_in_one_that_is_removed(bool moved_away, enum kerr expected)
{
    struct bytebuf b = { 0 };
    struct arena a;

    nodes_start(2, NULL);
    set_leader(0);
    partition_set_state(nodes[0].pt, &now); /* nobody follows */
    arena_init(&a);
    make_batch(&b, "x", 3, clock_wall_ms());
    struct produce_request_partition_data part = { .records = { .p = b.p, .n = (int32_t)b.n } };
    struct produce_request_topic_data data = { .name = kstr_of(TOPIC), .partition_data = &part, .n_partition_data = 1 };
    struct produce_request q = { .transactional_id = KSTR_NULL, .acks = -1, .timeout_ms = 600000, .topic_data = &data, .n_topic_data = 1 };
    int fd = peer_open(&nodes[0].g);
    peer_send(fd, &wire_produce_request, 9, 1, &q);
    wait_until(ends_of(0).end_offset == 3);
    lock_take(&nodes[0].pt->mu);
    nodes[0].pt->moved_away = moved_away;
    lock_release(&nodes[0].pt->mu);
    partitions_retire(nodes[0].g.b.partitions, TOPIC, 0);
    assert_int_equal(peer_produce_end(fd, 9, &a)->error_code, expected);
    assert_int_equal(produce(0, -1, "x", 1, NULL), expected);
    assert_int_equal(ends_of(0).end_offset, 3);
    close(fd);
    bytebuf_done(&b);
    arena_done(&a);
    nodes_stop();
}

static void who_waits_in_a_replica_that_moves_away_is_sent_to_the_new_leader(void **state)
{
    (void)state;
    wait_in_one_that_is_removed(true, KERR_NOT_LEADER_OR_FOLLOWER);
    wait_in_one_that_is_removed(false, KERR_UNKNOWN_TOPIC_OR_PARTITION);
}

/* Under each policy the leader is told of what may be counted on, and acks=all is answered. */
static void each_flush_policy_replicates(void **state)
{
    (void)state;
    static const char *const policies[][5] = {
        { "flush.policy", "async", NULL },
        { "flush.policy", "interval", "flush.ms", "20", NULL },
    };

    for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
        nodes_start(2, policies[i]);
        lead(0);
        for (int k = 0; k < 5; k++)
            assert_int_equal(produce(0, -1, "x", 3, NULL), 0);
        if (i == 1)
            assert_int_equal(ends_of(1).flushed_offset, 15);
        assert_same_logs(0, 1, 0);
        lead(1);
        assert_int_equal(produce(1, -1, "y", 3, NULL), 0);
        assert_same_logs(0, 1, 0);
        nodes_stop();
    }
}

/* Retention is the leader's; a follower lets go of what the leader has let go of. Compaction is each one's own. */
static void upkeep_of_what_is_followed(void **state)
{
    (void)state;
    static const char *const short_[] = { "segment.bytes", "1024", "retention.bytes", "2048", NULL };
    struct partition_view v;

    nodes_start(2, short_);
    lead(0);
    for (int k = 0; k < 20; k++)
        assert_int_equal(produce(0, -1, "some bytes of a value", 10, NULL), 0);
    partition_view(nodes[1].pt, &v);
    assert_int_equal(v.err, KERR_NOT_LEADER_OR_FOLLOWER);
    assert_true(partition_view_is_settled(&v));
    partition_view(nodes[0].pt, &v);
    assert_true(partition_view_is_settled(&v));
    assert_true(plog_retain(nodes[0].pt->log, v.hw, clock_wall_ms()) > 0);
    int64_t start = ends_of(0).start_offset;
    assert_true(start > 0);
    wait_until(ends_of(1).start_offset == start);
    wait_until(ends_of(1).size_bytes == ends_of(0).size_bytes);
    nodes_stop();
}

static void a_follower_that_was_away_catches_up(void **state)
{
    (void)state;
    static const char *const small[] = { "segment.bytes", "20000", "compression.type", "producer", NULL };

    nodes_start(2, small);
    lead(0);
    assert_int_equal(produce(0, -1, "before", 10, NULL), 0);
    follow_stop_partition(nodes[1].follow, nodes[1].pt);
    set_isr(1, 0);
    partition_set_state(nodes[0].pt, &now);
    for (int i = 0; i < 300; i++)
        assert_int_equal(produce(0, 1, "while it was away there came rather much of it", 20, NULL), 0);
    set_leader(0);
    tell_all();
    wait_until(ends_of(1).end_offset == 6010);
    set_isr(2, 0, 1);
    tell_all();
    assert_int_equal(produce(0, -1, "after", 1, NULL), 0);
    assert_same_logs(0, 1, 0);
    nodes_stop();
}

/* The leader has let go of all that the follower has: it begins anew at the leader's start, in the middle of a batch. */
static void a_follower_below_the_leaders_start_begins_anew(void **state)
{
    (void)state;
    int64_t a, b;

    nodes_start(2, NULL);
    lead(0);
    assert_int_equal(produce(0, -1, "old", 10, NULL), 0);
    follow_stop_partition(nodes[1].follow, nodes[1].pt);
    set_isr(1, 0);
    partition_set_state(nodes[0].pt, &now);
    for (int i = 0; i < 5; i++)
        assert_int_equal(produce(0, -1, "gone", 10, NULL), 0);
    assert_int_equal(plog_delete_before(nodes[0].pt->log, 43), 0);
    set_leader(0);
    tell_all();
    wait_until(ends_of(1).end_offset == 60 && ends_of(1).start_offset == 43);
    set_isr(2, 0, 1);
    tell_all();
    assert_int_equal(produce(0, -1, "new", 1, NULL), 0);
    assert_same_logs(0, 1, 43);
    for (int64_t o = 43; o <= 61; o++) {
        assert_int_equal(plog_text_of_offset(nodes[0].pt->log, o, &a), 0);
        assert_int_equal(plog_text_of_offset(nodes[1].pt->log, o, &b), 0);
        assert_int_equal(a, b);
    }
    nodes_stop();
}

/* The same when the leader has nothing at all any more. */
static void a_follower_of_an_emptied_leader_begins_anew(void **state)
{
    (void)state;
    nodes_start(2, NULL);
    lead(0);
    assert_int_equal(produce(0, -1, "old", 10, NULL), 0);
    follow_stop_partition(nodes[1].follow, nodes[1].pt);
    set_isr(1, 0);
    partition_set_state(nodes[0].pt, &now);
    assert_int_equal(produce(0, -1, "gone", 10, NULL), 0);
    assert_int_equal(plog_delete_before(nodes[0].pt->log, 20), 0);
    set_leader(0);
    tell_all();
    wait_until(ends_of(1).end_offset == 20 && ends_of(1).start_offset == 20);
    set_isr(2, 0, 1);
    tell_all();
    assert_int_equal(produce(0, -1, "new", 1, NULL), 0);
    assert_same_logs(0, 1, 20);
    nodes_stop();
}

static void a_follower_lets_go_of_what_the_leader_has_deleted(void **state)
{
    (void)state;
    nodes_start(2, NULL);
    lead(0);
    assert_int_equal(produce(0, -1, "a", 10, NULL), 0);
    assert_int_equal(produce(0, -1, "b", 10, NULL), 0);
    assert_int_equal(plog_delete_before(nodes[0].pt->log, 12), 0);
    wait_until(ends_of(1).start_offset == 12);
    assert_int_equal(produce(0, -1, "c", 1, NULL), 0);
    assert_same_logs(0, 1, 12);
    nodes_stop();
}

/* ---- what a leader answers to one that is no follower of this epoch ---- */
static struct fetch_response_partitions *fetch_as(int fd, int32_t id, int64_t be, int32_t epoch, int64_t offset,
                                                  int32_t last_epoch, struct arena *a)
{
    struct fetch_request *q = fetch_one(a, TOPIC, offset, 0);
    q->topics[0].topic_id = topic_id;
    q->replica_state.replica_id = id;
    q->replica_state.replica_epoch = be;
    q->topics[0].partitions[0].current_leader_epoch = epoch;
    q->topics[0].partitions[0].last_fetched_epoch = last_epoch;
    q->topics[0].partitions[0].log_start_offset = 0;
    return peer_fetch(fd, 15, q, a);
}

static void only_replicas_of_this_epoch_count(void **state)
{
    (void)state;
    struct arena a;

    nodes_start(2, NULL);
    set_leader(0);
    partition_set_state(nodes[0].pt, &now); /* nobody follows: the test does */
    assert_int_equal(produce(0, 1, "one", 3, NULL), 0);
    arena_init(&a);
    int fd = peer_open(&nodes[0].g);
    assert_int_equal(fetch_as(fd, 2, 10, 0, 3, 1, &a)->error_code, KERR_FENCED_LEADER_EPOCH);
    assert_int_equal(fetch_as(fd, 2, 10, 2, 3, 1, &a)->error_code, KERR_UNKNOWN_LEADER_EPOCH);
    assert_int_equal(fetch_as(fd, 2, 10, -1, 3, 1, &a)->error_code, KERR_FENCED_LEADER_EPOCH);
    assert_int_not_equal(fetch_as(fd, 7, 10, 1, 3, 1, &a)->error_code, KERR_NONE);
    assert_int_equal(fetch_as(fd, 2, 10, 1, 4, 1, &a)->diverging_epoch.end_offset, 3);
    assert_int_equal(fetch_as(fd, 2, 10, 1, 3, 0, &a)->diverging_epoch.end_offset, 0);
    struct fetch_response_partitions *p = fetch_as(fd, 2, 10, 1, 3, -1, &a); /* shows nothing */
    assert_int_equal(p->error_code, 0);
    assert_int_equal(replica_of(0).hw, 0);

    p = fetch_as(fd, 2, 10, 1, 0, -1, &a); /* it has nothing, and reads above the watermark */
    assert_int_equal(p->error_code, 0);
    assert_true(p->records.n > 0);
    assert_int_equal(replica_of(0).hw, 0);
    p = fetch_as(fd, -1, -1, 1, 0, -1, &a); /* which no consumer does */
    assert_int_equal(p->error_code, 0);
    assert_true(p->records.n <= 0);

    p = fetch_as(fd, 2, 10, 1, 3, 1, &a); /* it has all */
    assert_int_equal(p->error_code, 0);
    assert_int_equal(p->high_watermark, 3);
    assert_int_equal(replica_of(0).hw, 3);
    assert_int_equal(fetch_as(fd, 2, 9, 1, 3, 1, &a)->error_code, KERR_STALE_BROKER_EPOCH);
    close(fd);
    arena_done(&a);
    nodes_stop();
}

/* Not stopped before: whoever follows is stopped with all that it waits for. */
static void stopping_waits_for_nobody(void **state)
{
    (void)state;
    nodes_start(2, NULL);
    lead(0);
    assert_int_equal(produce(0, -1, "x", 1, NULL), 0);
    node_stop(0); /* the follower finds nobody */
    for (int i = 0; i < 3; i++)
        tell_node(&nodes[1]);
    node_stop(1);
    nodes_stop();
}

/* Who removes it waits for the follower's reference. */
static void a_partition_that_is_removed_is_let_go_of(void **state)
{
    (void)state;
    nodes_start(2, NULL);
    lead(0);
    assert_int_equal(produce(0, -1, "x", 1, NULL), 0);
    for (int i = 1; i >= 0; i--) {
        partitions_retire(nodes[i].g.b.partitions, TOPIC, 0);
        partition_unref(nodes[i].pt);
        assert_int_equal(partitions_remove(nodes[i].g.b.partitions, TOPIC, 0), 0);
        follow_stop(nodes[i].follow);
        assert_true(rig_stop(&nodes[i].g));
        follow_free(nodes[i].follow);
        nodes[i].runs = false;
    }
    nodes_stop();
}

/* A replica that comes back without its records must not lead: the others would cut theirs to match. It owns up to that first, and
 * follows then. */
static void a_replica_that_lost_its_records_is_copied_before_it_counts(void **state)
{
    (void)state;
    struct live_broker live[2] = { { .id = 1, .be = 10 }, { .id = 2, .be = 20, .base = 10 } };
    struct state_change change;

    nodes_start(2, NULL);
    lead(0);
    assert_int_equal(produce(0, -1, "x", 10, NULL), 0);
    node_stop(1);
    rig_remove(&nodes[1].g);
    lost_directory = true;
    node_start(1);
    lost_directory = false;
    tell_all();
    assert_int_equal(replica_of(1).role, REPLICA_DAMAGED);
    assert_int_equal(ends_of(1).end_offset, 0);
    live[1].be = nodes[1].be;
    struct replica_tick tick = { .now_ms = clock_mono_ms(), .lag_max_ms = 30000, .live = live, .n_live = 2 };
    assert_true(partition_tick(nodes[1].pt, &tick, &change));
    assert_int_equal(change.to.n_isr, 1); /* the floor does not need it */
    assert_int_equal(change.to.isr[0], 1);
    assert_int_equal(change.to.leader, 1);
    assert_int_equal(change.to.leader_epoch, now.leader_epoch + 1);
    assert_true(partition_proposal_sent(nodes[1].pt, &change));
    now = change.to;
    now.version++;
    partition_proposal_confirmed(nodes[1].pt, &change, now.version);
    assert_int_equal(replica_of(1).role, REPLICA_TRUNCATING);
    tell_all();
    wait_until(ends_of(1).flushed_offset == 10 && replica_of(0).follower[1].leo == 10);
    assert_int_equal(replica_of(1).role, REPLICA_FETCHING);
    assert_same_logs(0, 1, 0);
    tick.now_ms = clock_mono_ms();
    assert_true(partition_tick(nodes[0].pt, &tick, &change)); /* and is believed again (R9, R10) */
    assert_int_equal(change.to.n_isr, 2);
    assert_int_equal(change.to.isr_be[1], nodes[1].be);
    nodes_stop();
}

/* ---- all at once ---- */

/* One who writes with acks=all to whoever leads, until told to stop; what was acknowledged is noted. */
struct writer {
    pthread_t thread;
    int number;
    int32_t n_acked, n_failed;
    int64_t offsets[WRITES_MAX]; /* by number of the write; -1: it was not acknowledged */
};

static atomic_int leads_now; /* index of the node */
static atomic_bool writing;

static void write_one(struct writer *w, int32_t k)
{
    char value[32];
    int64_t offset;

    snprintf(value, sizeof value, "w%d-%d", w->number, k);
    int err = produce(atomic_load(&leads_now), -1, value, 1, &offset);
    w->offsets[k] = err == 0 ? offset : -1;
    w->n_acked += err == 0;
    w->n_failed += err != 0;
}

static void *write_on(void *arg)
{
    struct writer *w = arg;

    for (int32_t k = 0; k < WRITES_MAX; k++) {
        if (atomic_load(&writing))
            write_one(w, k);
        else
            w->offsets[k] = -1;
    }
    return NULL;
}

/* The value at the offset, in the log of node i: one record a batch, "VALUE-0". */
static void assert_has(int i, int64_t offset, const char *value)
{
    struct plog_span s;
    struct record_iter it;
    struct record r;
    uint8_t bytes[512];

    assert_int_equal(plog_read_to_copy(nodes[i].pt->log, offset, offset + 1, 1, true, &s), 0);
    assert_true(s.n > 0 && s.n <= (int64_t)sizeof bytes);
    assert_int_equal(plog_span_read(&s, bytes), 0);
    record_iter_init(&it);
    assert_int_equal(record_iter_start(&it, slice_of(bytes, (size_t)s.n), 4096), 0);
    assert_int_equal(record_iter_next(&it, &r), 1);
    assert_int_equal(r.offset, offset);
    assert_int_equal(r.value.n, strlen(value) + 2);
    assert_memory_equal(r.value.p, value, strlen(value));
    record_iter_done(&it);
    plog_span_release(&s);
}

/* Every replica is in sync all the time, so any may be elected at any moment: also one that has heard nothing of the epochs in
 * between, or while another still believes that it leads. */
static void disturb(struct rnd *r)
{
    int i = (int)rnd_below(r, 3);

    switch (rnd_below(r, 4)) {
    case 0: /* it hears of nothing, until it is told again */
        follow_stop_partition(nodes[i].follow, nodes[i].pt);
        break;
    case 1: /* everybody hears, in some order */
        set_leader(i);
        for (int k = 0; k < 3; k++)
            tell_node(&nodes[(i + k + (int)rnd_below(r, 3)) % 3]);
        tell_all();
        atomic_store(&leads_now, i);
        break;
    case 2: /* only the new leader and one other hear: the old one is a zombie */
        set_leader(i);
        tell_node(&nodes[i]);
        tell_node(&nodes[(i + 1) % 3]);
        if (rnd_one_in(r, 2))
            atomic_store(&leads_now, i);
        break;
    default:
        tell_all();
        break;
    }
}

static void whatever_happens_what_was_acknowledged_is_everywhere(void **state)
{
    (void)state;
    static const char *const small[] = { "segment.bytes", "4096", "flush.policy", "async", NULL };
    static struct writer writers[3];
    const char *seed = getenv("SEED"), *events = getenv("EVENTS");
    struct rnd r = rnd_of(seed == NULL ? 1 : strtoull(seed, NULL, 10), RND_SWARM, 0);
    int n = events == NULL ? 60 : atoi(events), acked = 0;

    nodes_start(3, small);
    lead(0);
    atomic_store(&leads_now, 0);
    atomic_store(&writing, true);
    for (int k = 0; k < 3; k++) {
        writers[k] = (struct writer){ .number = k };
        pthread_create(&writers[k].thread, NULL, write_on, &writers[k]);
    }
    for (int k = 0; k < n; k++) {
        int64_t leo = replica_of(0).leo + replica_of(1).leo + replica_of(2).leo;
        disturb(&r);
        for (int spins = 0; spins < 20 && leo == replica_of(0).leo + replica_of(1).leo + replica_of(2).leo; spins++)
            nap();
    }
    lead(2);
    atomic_store(&leads_now, 2);
    wait_until(replica_of(2).hw == replica_of(2).leo);
    atomic_store(&writing, false);
    for (int k = 0; k < 3; k++)
        pthread_join(writers[k].thread, NULL);
    assert_int_equal(produce(2, -1, "last", 1, NULL), 0);
    assert_same_logs(0, 1, 0);
    assert_same_logs(0, 2, 0);
    for (int k = 0; k < 3; k++) {
        char value[32];
        for (int32_t i = 0; i < WRITES_MAX; i++) {
            snprintf(value, sizeof value, "w%d-%d", k, i);
            if (writers[k].offsets[i] >= 0)
                assert_has((int)rnd_below(&r, 3), writers[k].offsets[i], value);
        }
        acked += writers[k].n_acked;
    }
    if (events != NULL)
        print_message("%d acknowledged, the log ends at %lld in epoch %d\n", acked, (long long)ends_of(0).end_offset, now.leader_epoch);
    assert_true(acked > 0);
    for (int i = 0; i < 3; i++)
        assert_int_not_equal(replica_of(i).role, REPLICA_DAMAGED);
    nodes_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acks_all_is_answered_when_the_follower_has_it),
        cmocka_unit_test(without_the_follower_nothing_is_committed),
        cmocka_unit_test(too_few_in_sync_are_told),
        cmocka_unit_test(what_parts_from_the_new_leader_is_cut),
        cmocka_unit_test(leaders_change_and_nothing_acknowledged_is_lost),
        cmocka_unit_test(what_another_leader_commits_at_the_offset_is_no_acknowledgement),
        cmocka_unit_test(too_few_in_sync_after_the_append_are_told),
        cmocka_unit_test(a_producer_waits_no_longer_than_it_says),
        cmocka_unit_test(who_waits_in_a_replica_that_moves_away_is_sent_to_the_new_leader),
        cmocka_unit_test(each_flush_policy_replicates),
        cmocka_unit_test(upkeep_of_what_is_followed),
        cmocka_unit_test(a_follower_that_was_away_catches_up),
        cmocka_unit_test(a_follower_below_the_leaders_start_begins_anew),
        cmocka_unit_test(a_follower_of_an_emptied_leader_begins_anew),
        cmocka_unit_test(a_follower_lets_go_of_what_the_leader_has_deleted),
        cmocka_unit_test(only_replicas_of_this_epoch_count),
        cmocka_unit_test(stopping_waits_for_nobody),
        cmocka_unit_test(a_partition_that_is_removed_is_let_go_of),
        cmocka_unit_test(a_replica_that_lost_its_records_is_copied_before_it_counts),
        cmocka_unit_test(whatever_happens_what_was_acknowledged_is_everywhere),
    };
    return RUN(tests);
}
