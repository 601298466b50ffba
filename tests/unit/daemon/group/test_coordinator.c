/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator in a whole broker, over a real socket: every version of the group APIs, what is durable,
 * what is refused, and what becomes of those who wait. */
#include "tests/unit/daemon/rig.h"

#include <unistd.h>

#include "daemon/group/coordinator.h"
#include "daemon/meta/cluster.h"
#include "lib/base/attr.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/store/io.h"

static struct rig g;
static const char *const quick[] = { "group.initial.rebalance.delay.ms",
                                     "0",
                                     "offsets.topic.num.partitions",
                                     "4",
                                     "offsets.retention.check.interval.ms",
                                     "20",
                                     "flush.policy",
                                     "async",
                                     NULL };

/* One client, and what it knows of its membership. */
struct peer {
    int fd;
    struct arena a;
    const char *group;
    const char *member_id;
    int32_t generation;
    int v; /* of JoinGroup; the others as high as they have that many */
};

static struct peer peer_new(const char *group, int version)
{
    struct peer p = { .fd = peer_open(&g), .group = group, .member_id = "", .generation = -1, .v = version };

    arena_init(&p.a);
    return p;
}

static void peer_done(struct peer *p)
{
    close(p->fd);
    arena_done(&p->a);
}

#define ASK(p, api, version, body)                                                                      \
    ((struct api##_response *)peer_ask((p)->fd, &wire_##api##_request, &wire_##api##_response, version, \
                                       body, &(p)->a))

static const char *text(struct peer *p, struct kstr s)
{
    return s.n < 0 ? NULL : arena_printf(&p->a, "%.*s", KSTR_FMT(s));
}

static int upto(const struct peer *p, int max)
{
    return MIN(p->v, max);
}

#define assert_code(got, want) assert_string_equal(kerr_name(got), kerr_name(want))

/* ---- requests ---- */

static struct join_group_request *join_body(struct peer *p)
{
    struct join_group_request *q = arena_alloc(&p->a, sizeof *q);

    wire_defaults(&wire_join_group_request, q);
    q->group_id = kstr_of(p->group);
    q->session_timeout_ms = 10000;
    q->rebalance_timeout_ms = p->v >= 1 ? 20000 : -1;
    q->member_id = kstr_of(p->member_id);
    q->protocol_type = kstr_of("consumer");
    q->n_protocols = 1;
    q->protocols = arena_array(&p->a, 1, sizeof *q->protocols);
    q->protocols[0].name = kstr_of("range");
    q->protocols[0].metadata = kstr_bytes("\0\0\0\0\0\1\0\1t\0\0\0\0", 13);
    return q;
}

/* A coordinator that has only just started may still be loading: a client asks again, and so does this. */
static struct join_group_response *join(struct peer *p)
{
    struct join_group_response *a;

    do
        a = ASK(p, join_group, p->v, join_body(p));
    while (a->error_code == KERR_COORDINATOR_LOAD_IN_PROGRESS);

    if (a->error_code == KERR_NONE || a->error_code == KERR_MEMBER_ID_REQUIRED) {
        p->member_id = text(p, a->member_id);
        p->generation = a->generation_id;
    }
    return a;
}

static struct sync_group_response *sync_with(struct peer *p, const char *assignment)
{
    struct sync_group_request q;
    struct sync_group_request_assignments one = { kstr_of(p->member_id), kstr_of(assignment) };
    int version = upto(p, 5);

    wire_defaults(&wire_sync_group_request, &q);
    q.group_id = kstr_of(p->group);
    q.member_id = kstr_of(p->member_id);
    q.generation_id = p->generation;
    if (version >= 5) {
        q.protocol_type = kstr_of("consumer");
        q.protocol_name = kstr_of("range");
    }
    q.assignments = &one;
    q.n_assignments = 1;
    return ASK(p, sync_group, version, &q);
}

static enum kerr heartbeat(struct peer *p)
{
    struct heartbeat_request q;

    wire_defaults(&wire_heartbeat_request, &q);
    q.group_id = kstr_of(p->group);
    q.member_id = kstr_of(p->member_id);
    q.generation_id = p->generation;
    return ASK(p, heartbeat, upto(p, 4), &q)->error_code;
}

static enum kerr leave(struct peer *p)
{
    struct leave_group_request q;
    struct leave_group_request_members one;

    wire_defaults(&wire_leave_group_request, &q);
    one = (struct leave_group_request_members){ .member_id = kstr_of(p->member_id),
                                                .group_instance_id = KSTR_NULL,
                                                .reason = KSTR_NULL };
    q.group_id = kstr_of(p->group);
    if (p->v < 3) {
        q.member_id = kstr_of(p->member_id);
        return ASK(p, leave_group, p->v, &q)->error_code;
    }
    q.members = &one;
    q.n_members = 1;
    struct leave_group_response *a = ASK(p, leave_group, upto(p, 5), &q);
    assert_code(a->error_code, KERR_NONE);
    assert_int_equal(a->n_members, 1);
    return a->members[0].error_code;
}

struct commit { /* one position */
    const char *topic;
    int32_t partition;
    int64_t offset;
    const char *note;
    int32_t leader_epoch;
    int64_t retention_ms;
};

static enum kerr commit_as(struct peer *p, int version, struct commit c)
{
    struct offset_commit_request q;
    struct offset_commit_request_topics t = { .name = kstr_of(c.topic), .n_partitions = 1 };
    struct offset_commit_request_partitions part = {
        .partition_index = c.partition,
        .committed_offset = c.offset,
        .committed_leader_epoch = version >= 6 ? c.leader_epoch : -1,
        .committed_metadata = kstr_of(c.note),
    };

    wire_defaults(&wire_offset_commit_request, &q);
    q.group_id = kstr_of(p->group);
    q.generation_id_or_member_epoch = p->generation;
    q.member_id = kstr_of(p->member_id);
    if (version <= 4)
        q.retention_time_ms = c.retention_ms > 0 ? c.retention_ms : -1;
    t.partitions = &part;
    q.topics = &t;
    q.n_topics = 1;
    struct offset_commit_response *a = ASK(p, offset_commit, version, &q);
    assert_int_equal(a->n_topics, 1);
    assert_int_equal(a->topics[0].n_partitions, 1);
    assert_int_equal(a->topics[0].partitions[0].partition_index, c.partition);
    return a->topics[0].partitions[0].error_code;
}

static enum kerr commit_noted(struct peer *p, const char *topic, int32_t partition, int64_t offset,
                              const char *note, int32_t leader_epoch)
{
    return commit_as(p, MAX(2, upto(p, 9)),
                     (struct commit){ .topic = topic,
                                      .partition = partition,
                                      .offset = offset,
                                      .note = note,
                                      .leader_epoch = leader_epoch });
}

static enum kerr commit(struct peer *p, const char *topic, int32_t partition, int64_t offset)
{
    return commit_noted(p, topic, partition, offset, "", -1);
}

struct position {
    enum kerr err;
    int64_t offset;
    int32_t leader_epoch;
    const char *note;
};

/* As a member would ask: one partition, up to version 7. */
static struct position fetch_one_position(struct peer *p, int version, const char *topic, int32_t partition)
{
    struct offset_fetch_request q;
    struct offset_fetch_request_topics t = { kstr_of(topic), &partition, 1 };

    wire_defaults(&wire_offset_fetch_request, &q);
    q.group_id = kstr_of(p->group);
    q.topics = &t;
    q.n_topics = 1;
    struct offset_fetch_response *a = ASK(p, offset_fetch, version, &q);
    if (a->error_code != KERR_NONE)
        return (struct position){ .err = a->error_code, .offset = -2 };
    assert_int_equal(a->n_topics, 1);
    struct offset_fetch_response_partitions *x = &a->topics[0].partitions[0];
    return (struct position){ x->error_code, x->committed_offset, x->committed_leader_epoch,
                              text(p, x->metadata) };
}

/* All of it, as tools ask, in version 8 and later. */
static struct offset_fetch_response_groups *fetch_all(struct peer *p, int version)
{
    struct offset_fetch_request q;
    struct offset_fetch_request_groups one;

    wire_defaults(&wire_offset_fetch_request, &q);
    one = (struct offset_fetch_request_groups){
        .group_id = kstr_of(p->group), .member_id = KSTR_NULL, .member_epoch = -1, .n_topics = -1
    };
    q.groups = &one;
    q.n_groups = 1;
    struct offset_fetch_response *a = ASK(p, offset_fetch, version, &q);
    assert_int_equal(a->n_groups, 1);
    return &a->groups[0];
}

static int64_t position_of(struct peer *p, const char *topic)
{
    struct position x = fetch_one_position(p, 7, topic, 0);

    assert_code(x.err, KERR_NONE);
    return x.offset;
}

static struct describe_groups_response_groups *describe(struct peer *p, int version)
{
    struct describe_groups_request q;
    struct kstr id = kstr_of(p->group);

    wire_defaults(&wire_describe_groups_request, &q);
    q.groups = &id;
    q.n_groups = 1;
    q.include_authorized_operations = version >= 3;
    struct describe_groups_response *a = ASK(p, describe_groups, version, &q);
    assert_int_equal(a->n_groups, 1);
    return &a->groups[0];
}

static bool is_listed(struct peer *p, int version, const char *state, const char *type)
{
    struct list_groups_request q;
    struct kstr states = kstr_of(state), types = kstr_of(type);

    wire_defaults(&wire_list_groups_request, &q);
    q.states_filter = &states;
    q.n_states_filter = state != NULL;
    q.types_filter = &types;
    q.n_types_filter = type != NULL;
    struct list_groups_response *a = ASK(p, list_groups, version, &q);
    assert_code(a->error_code, KERR_NONE);
    for (int32_t i = 0; i < a->n_groups; i++)
        if (kstr_eqz(a->groups[i].group_id, p->group))
            return true;
    return false;
}

static enum kerr delete_group(struct peer *p)
{
    struct delete_groups_request q;
    struct kstr id = kstr_of(p->group);

    wire_defaults(&wire_delete_groups_request, &q);
    q.groups_names = &id;
    q.n_groups_names = 1;
    struct delete_groups_response *a = ASK(p, delete_groups, upto(p, 2), &q);
    assert_int_equal(a->n_results, 1);
    assert_true(kstr_eqz(a->results[0].group_id, p->group));
    return a->results[0].error_code;
}

static enum kerr delete_position(struct peer *p, const char *topic, int32_t partition)
{
    struct offset_delete_request q;
    struct offset_delete_request_partitions part = { partition };
    struct offset_delete_request_topics t = { kstr_of(topic), &part, 1 };

    wire_defaults(&wire_offset_delete_request, &q);
    q.group_id = kstr_of(p->group);
    q.topics = &t;
    q.n_topics = 1;
    struct offset_delete_response *a = ASK(p, offset_delete, 0, &q);
    if (a->error_code != KERR_NONE)
        return a->error_code;
    assert_int_equal(a->n_topics, 1);
    return a->topics[0].partitions[0].error_code;
}

/* In: joined, synced, working. */
static struct peer member(const char *group, int version)
{
    struct peer p = peer_new(group, version);

    if (version >= 4)
        assert_code(join(&p)->error_code, KERR_MEMBER_ID_REQUIRED);
    assert_code(join(&p)->error_code, KERR_NONE);
    assert_code(sync_with(&p, "mine")->error_code, KERR_NONE);
    return p;
}

/* ---- every version ---- */

static void find_coordinator(struct peer *p, int version)
{
    struct find_coordinator_request q;
    struct kstr key = kstr_of(p->group);

    wire_defaults(&wire_find_coordinator_request, &q);
    if (version >= 4) {
        q.coordinator_keys = &key;
        q.n_coordinator_keys = 1;
    } else {
        q.key = key;
    }
    struct find_coordinator_response *a = ASK(p, find_coordinator, version, &q);
    if (version < 4) {
        assert_code(a->error_code, KERR_NONE);
        assert_int_equal(a->port, g.port);
        return;
    }
    assert_int_equal(a->n_coordinators, 1);
    assert_code(a->coordinators[0].error_code, KERR_NONE);
    assert_int_equal(a->coordinators[0].port, g.port);
    assert_true(kstr_eqz(a->coordinators[0].host, "127.0.0.1"));
    assert_true(kstr_eqz(a->coordinators[0].key, p->group));
}

static void a_member_lives_through_every_version(void **state)
{
    (void)state;
    for (int v = 0; v <= 9; v++) {
        char group[32];
        snprintf(group, sizeof group, "life-%d", v);
        struct peer p = peer_new(group, v);
        find_coordinator(&p, upto(&p, 5));
        if (v >= 4) {
            struct join_group_response *a = join(&p);
            assert_code(a->error_code, KERR_MEMBER_ID_REQUIRED);
            assert_memory_equal(a->member_id.p, "rig-", 4);
            assert_int_equal(a->member_id.n, 4 + 36);
        }
        struct join_group_response *a = join(&p);
        assert_code(a->error_code, KERR_NONE);
        assert_int_equal(a->generation_id, 1);
        assert_true(kstr_eq(a->leader, a->member_id));
        assert_true(kstr_eqz(a->protocol_name, "range"));
        assert_true(v < 7 || kstr_eqz(a->protocol_type, "consumer"));
        assert_int_equal(a->n_members, 1);
        assert_int_equal(a->members[0].metadata.n, 13);
        struct sync_group_response *s = sync_with(&p, "mine");
        assert_code(s->error_code, KERR_NONE);
        assert_true(kstr_eqz(s->assignment, "mine"));
        assert_true(v < 5 || kstr_eqz(s->protocol_type, "consumer"));

        assert_code(heartbeat(&p), KERR_NONE);
        assert_code(commit_noted(&p, "t", 0, 40 + v, "note", 5), KERR_NONE);
        struct position x = fetch_one_position(&p, MAX(1, upto(&p, 7)), "t", 0);
        assert_code(x.err, KERR_NONE);
        assert_int_equal(x.offset, 40 + v);
        assert_string_equal(x.note, "note");
        assert_int_equal(x.leader_epoch, v >= 6 ? 5 : -1);

        struct describe_groups_response_groups *d = describe(&p, upto(&p, 5));
        assert_code(d->error_code, KERR_NONE);
        assert_true(kstr_eqz(d->group_state, "Stable"));
        assert_true(kstr_eqz(d->protocol_type, "consumer"));
        assert_true(kstr_eqz(d->protocol_data, "range"));
        assert_int_equal(d->n_members, 1);
        assert_true(kstr_eqz(d->members[0].member_assignment, "mine"));
        assert_true(kstr_eqz(d->members[0].client_id, "rig"));
        assert_true(kstr_eqz(d->members[0].client_host, "/127.0.0.1"));
        assert_int_equal(d->authorized_operations, v >= 3 ? 0x148 : INT32_MIN);
        assert_true(is_listed(&p, upto(&p, 5), NULL, NULL));

        assert_code(leave(&p), KERR_NONE);
        assert_code(heartbeat(&p), KERR_UNKNOWN_MEMBER_ID);
        assert_true(kstr_eqz(describe(&p, upto(&p, 5))->group_state, "Empty"));
        assert_int_equal(position_of(&p, "t"), 40 + v);
        peer_done(&p);
    }
}

static void positions_are_answered_alike_in_both_ways_of_asking(void **state)
{
    (void)state;
    struct peer p = peer_new("both", 9);

    assert_code(commit_noted(&p, "t", 1, 7, "second", 3), KERR_NONE);
    assert_code(commit_noted(&p, "t", 0, 6, NULL, -1), KERR_NONE);
    assert_code(commit_noted(&p, "u", 0, 8, "", 0), KERR_NONE);
    for (int version = 8; version <= 9; version++) {
        struct offset_fetch_response_groups *all = fetch_all(&p, version);
        assert_code(all->error_code, KERR_NONE);
        assert_int_equal(all->n_topics, 2);
        assert_true(kstr_eqz(all->topics[0].name, "t"));
        assert_int_equal(all->topics[0].n_partitions, 2);
        assert_int_equal(all->topics[0].partitions[0].committed_offset, 6);
        assert_int_equal(all->topics[0].partitions[0].committed_leader_epoch, -1);
        assert_int_equal(all->topics[0].partitions[0].metadata.n, 0);
        assert_int_equal(all->topics[0].partitions[1].committed_offset, 7);
        assert_int_equal(all->topics[0].partitions[1].committed_leader_epoch, 3);
        assert_true(kstr_eqz(all->topics[0].partitions[1].metadata, "second"));
        assert_true(kstr_eqz(all->topics[1].name, "u"));
    }
    struct position x = fetch_one_position(&p, 7, "t", 1);
    assert_int_equal(x.offset, 7);
    assert_int_equal(x.leader_epoch, 3);
    assert_string_equal(x.note, "second");
    x = fetch_one_position(&p, 7, "t", 2); /* never committed: no error */
    assert_code(x.err, KERR_NONE);
    assert_int_equal(x.offset, -1);
    assert_int_equal(x.leader_epoch, -1);
    assert_string_equal(x.note, "");
    struct peer nobody = peer_new("no-such-group", 9);
    assert_int_equal(position_of(&nobody, "t"), -1);
    assert_int_equal(fetch_all(&nobody, 9)->n_topics, 0);
    peer_done(&nobody);
    peer_done(&p);
}

/* ---- refusals ---- */

static void what_cannot_be_is_refused_before_a_group_is_made(void **state)
{
    (void)state;
    struct peer p = peer_new("", 5);

    assert_code(join(&p)->error_code, KERR_INVALID_GROUP_ID);
    assert_code(sync_with(&p, "")->error_code, KERR_INVALID_GROUP_ID);
    assert_code(heartbeat(&p), KERR_INVALID_GROUP_ID);

    p.group = "refused";
    struct join_group_request *q = join_body(&p);
    q->session_timeout_ms = 5999;
    assert_code(ASK(&p, join_group, 5, q)->error_code, KERR_INVALID_SESSION_TIMEOUT);
    q->session_timeout_ms = 1800001;
    assert_code(ASK(&p, join_group, 5, q)->error_code, KERR_INVALID_SESSION_TIMEOUT);
    q = join_body(&p);
    q->n_protocols = 0;
    assert_code(ASK(&p, join_group, 5, q)->error_code, KERR_INCONSISTENT_GROUP_PROTOCOL);
    p.member_id = "stranger";
    assert_code(join(&p)->error_code, KERR_UNKNOWN_MEMBER_ID);
    assert_code(sync_with(&p, "")->error_code, KERR_UNKNOWN_MEMBER_ID);
    assert_code(heartbeat(&p), KERR_UNKNOWN_MEMBER_ID);
    assert_code(leave(&p), KERR_UNKNOWN_MEMBER_ID);
    p.generation = 1;
    assert_code(commit(&p, "t", 0, 1), KERR_ILLEGAL_GENERATION);
    assert_code(delete_group(&p), KERR_GROUP_ID_NOT_FOUND);
    assert_code(delete_position(&p, "t", 0), KERR_GROUP_ID_NOT_FOUND);
    assert_true(kstr_eqz(describe(&p, 5)->group_state, "Dead"));
    assert_false(is_listed(&p, 5, NULL, NULL));
    peer_done(&p);
}

static void a_sync_without_its_protocol_is_refused(void **state)
{
    (void)state;
    struct peer p = member("half-sync", 9);
    struct sync_group_request q;

    wire_defaults(&wire_sync_group_request, &q);
    q.group_id = kstr_of(p.group);
    q.member_id = kstr_of(p.member_id);
    q.generation_id = p.generation;
    assert_code(ASK(&p, sync_group, 5, &q)->error_code, KERR_INCONSISTENT_GROUP_PROTOCOL);
    assert_code(ASK(&p, sync_group, 4, &q)->error_code, KERR_NONE);
    peer_done(&p);
}

static void bad_positions_do_not_hinder_good_ones(void **state)
{
    (void)state;
    struct peer p = peer_new("mixed", 7);
    CLEANUP(freep) char *long_note = xmalloc(4098);
    struct offset_commit_request q;

    memset(long_note, 'x', 4097);
    long_note[4097] = '\0';
    struct offset_commit_request_partitions parts[] = {
        { 0, 10, -1, kstr_of("fits") },
        { 1, 11, -1, kstr_of(long_note) },
        { 2, 12, -1, kstr_bytes(long_note, 4096) },
        { 99, 13, -1, kstr_of("") },
        { -1, 14, -1, kstr_of("") },
    };
    struct offset_commit_request_topics topics[] = { { kstr_of("t"), { { 0 } }, parts, 5 },
                                                     { kstr_of("gone"), { { 0 } }, parts, 1 } };
    wire_defaults(&wire_offset_commit_request, &q);
    q.group_id = kstr_of(p.group);
    q.member_id = kstr_of("");
    q.topics = topics;
    q.n_topics = 2;
    struct offset_commit_response *a = ASK(&p, offset_commit, 7, &q);
    static const enum kerr want[] = { KERR_NONE, KERR_OFFSET_METADATA_TOO_LARGE, KERR_NONE,
                                      KERR_UNKNOWN_TOPIC_OR_PARTITION, KERR_UNKNOWN_TOPIC_OR_PARTITION };
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        assert_code(a->topics[0].partitions[i].error_code, want[i]);
    assert_code(a->topics[1].partitions[0].error_code, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(position_of(&p, "t"), 10);
    assert_int_equal(fetch_one_position(&p, 7, "t", 1).offset, -1);
    assert_int_equal(strlen(fetch_one_position(&p, 7, "t", 2).note), 4096);
    peer_done(&p);
}

static void only_members_commit_while_there_are_any(void **state)
{
    (void)state;
    struct peer m = member("members-only", 5), tool = peer_new("members-only", 5);

    assert_code(commit(&tool, "t", 0, 1), KERR_UNKNOWN_MEMBER_ID);
    assert_code(commit(&m, "t", 0, 2), KERR_NONE);
    m.generation++;
    assert_code(commit(&m, "t", 0, 3), KERR_ILLEGAL_GENERATION);
    m.generation--;
    assert_code(leave(&m), KERR_NONE);
    assert_code(commit(&tool, "t", 0, 4), KERR_NONE);
    assert_int_equal(position_of(&tool, "t"), 4);
    peer_done(&m);
    peer_done(&tool);
}

/* ---- who waits ---- */

static void those_who_wait_are_answered_whatever_connection_dies(void **state)
{
    (void)state;
    struct peer a = member("dying", 3), b = peer_new("dying", 3);

    peer_send(b.fd, &wire_join_group_request, 3, 1, join_body(&b));
    while (heartbeat(&a) != KERR_REBALANCE_IN_PROGRESS)
        ;
    close(b.fd); /* parked for ever, for all anybody knows */
    struct join_group_response *j = join(&a);
    assert_code(j->error_code, KERR_NONE);
    assert_int_equal(j->n_members, 2);
    b.fd = peer_open(&g);
    peer_done(&a);
    peer_done(&b);
}

static void answers_keep_the_order_of_their_requests(void **state)
{
    (void)state;
    struct peer a = member("orderly", 3), b = peer_new("orderly", 3);
    struct arena scratch;

    arena_init(&scratch);
    peer_send(b.fd, &wire_join_group_request, 3, 1, join_body(&b));
    struct list_groups_request q;
    wire_defaults(&wire_list_groups_request, &q);
    peer_send(b.fd, &wire_list_groups_request, 0, 2, &q);
    while (heartbeat(&a) != KERR_REBALANCE_IN_PROGRESS)
        ;
    join(&a);
    struct join_group_response *j = peer_reply(b.fd, &wire_join_group_response, 3, 1, &scratch);
    assert_code(j->error_code, KERR_NONE);
    peer_reply(b.fd, &wire_list_groups_response, 0, 2, &scratch);
    arena_done(&scratch);
    peer_done(&a);
    peer_done(&b);
}

static void a_stop_answers_those_who_wait(void **state)
{
    (void)state;
    struct peer a = member("stopping", 3), b = peer_new("stopping", 3);

    peer_send(b.fd, &wire_join_group_request, 3, 1, join_body(&b));
    while (heartbeat(&a) != KERR_REBALANCE_IN_PROGRESS)
        ;
    int64_t began = clock_mono_ms();
    rig_restart(&g, quick);
    assert_in_range(clock_mono_ms() - began, 0, 5000);
    struct join_group_response *j = peer_reply(b.fd, &wire_join_group_response, 3, 1, &b.a);
    assert_code(j->error_code, KERR_COORDINATOR_NOT_AVAILABLE);
    peer_done(&a);
    peer_done(&b);
}

/* ---- a disk that cannot be read for a while ---- */

static atomic_int bad_reads;

/* The loading of groups reads whole batches; what looks at the files of a log otherwise reads less at once. */
static int64_t sometimes_unreadable(const struct store_io *io, int fd, void *p, size_t n, off_t at)
{
    char link[64], path[512];

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = n > 3000 ? readlink(link, path, sizeof path - 1) : 0;
    path[MAX(len, 0)] = '\0';
    if (strstr(path, OFFSETS_TOPIC) != NULL && strstr(path, ".log") != NULL && atomic_load(&bad_reads) > 0) {
        atomic_fetch_sub(&bad_reads, 1);
        return -EIO;
    }
    return store_io_real.pread(io, fd, p, n, at);
}

/* L2: no group is served by halves. */
static void what_cannot_be_read_is_read_later(void **state)
{
    (void)state;
    struct peer p = peer_new("unread", 9);
    struct store_io io = store_io_real;
    char note[4000];
    struct position f;

    memset(note, 'n', sizeof note - 1);
    note[sizeof note - 1] = '\0';
    for (int i = 1; i <= 3; i++)
        assert_code(commit_noted(&p, "t", 0, i, note, -1), KERR_NONE);
    peer_done(&p);
    assert_true(rig_stop(&g));
    io.pread = sometimes_unreadable;
    atomic_store(&bad_reads, 2);
    rig_start_in(&g, &io, 1, quick);
    p = peer_new("unread", 5);
    do
        f = fetch_one_position(&p, 5, "t", 0);
    while (f.err == KERR_COORDINATOR_LOAD_IN_PROGRESS);
    assert_code(f.err, KERR_NONE);
    assert_int_equal(f.offset, 3);
    assert_int_equal(atomic_load(&bad_reads), 0);
    peer_done(&p);
    rig_restart(&g, quick);
}

/* Whoever takes a partition away waits until nobody holds it: the coordinator must not be who he waits for, whether
 * there are groups, records under way, or just nobody who asks. */
static void partitions_that_leave_are_let_go(void **state)
{
    (void)state;
    struct peer tool = peer_new("leaving", 9), a = member("leaving", 3), b = peer_new("leaving", 3);

    assert_code(commit(&tool, "t", 0, 1), KERR_UNKNOWN_MEMBER_ID);
    peer_send(b.fd, &wire_join_group_request, 3, 1, join_body(&b));
    while (heartbeat(&a) != KERR_REBALANCE_IN_PROGRESS)
        ;
    for (int32_t id = 0; id < 4; id++)
        partitions_remove(g.b.partitions, OFFSETS_TOPIC, id);
    struct join_group_response *j = peer_reply(b.fd, &wire_join_group_response, 3, 1, &b.a);
    assert_code(j->error_code, KERR_NOT_COORDINATOR);
    assert_code(heartbeat(&a), KERR_NOT_COORDINATOR);
    rig_restart(&g, quick); /* and the broker stops, and is as before */
    peer_done(&a);
    peer_done(&b);
    peer_done(&tool);
}

/* ---- durable ---- */

static void wait_loaded(struct peer *p)
{
    while (describe(p, 5)->error_code == KERR_COORDINATOR_LOAD_IN_PROGRESS)
        ;
}

static void groups_and_positions_survive_a_restart(void **state)
{
    (void)state;
    struct peer a = member("lasting", 5), tool = peer_new("lasting-tool", 9);

    wait_loaded(&tool);
    assert_code(commit_noted(&a, "t", 0, 100, "x", -1), KERR_NONE);
    assert_code(commit_noted(&a, "t", 0, 90, "back", 2), KERR_NONE);
    assert_code(commit_noted(&tool, "t", 2, 5, "tool", 4), KERR_NONE);
    rig_restart(&g, quick);
    close(a.fd);
    close(tool.fd);
    a.fd = peer_open(&g);
    tool.fd = peer_open(&g);
    wait_loaded(&a);
    wait_loaded(&tool);
    assert_code(heartbeat(&a), KERR_NONE); /* the same member, the same generation */
    assert_true(kstr_eqz(sync_with(&a, "")->assignment, "mine"));
    assert_int_equal(position_of(&a, "t"), 90);
    assert_true(kstr_eqz(describe(&a, 5)->group_state, "Stable"));
    struct position x = fetch_one_position(&tool, 7, "t", 2);
    assert_int_equal(x.offset, 5);
    assert_int_equal(x.leader_epoch, 4);
    assert_string_equal(x.note, "tool");
    assert_true(kstr_eqz(describe(&tool, 5)->group_state, "Empty"));
    assert_code(leave(&a), KERR_NONE);
    peer_done(&a);
    peer_done(&tool);
}

static void a_deleted_group_stays_deleted(void **state)
{
    (void)state;
    for (int v = 0; v <= 2; v++) {
        struct peer p = member("doomed", v);
        assert_code(commit(&p, "t", 0, 1), KERR_NONE);
        assert_code(commit(&p, "t", 1, 1), KERR_NONE);
        assert_code(delete_group(&p), KERR_NON_EMPTY_GROUP);
        assert_code(leave(&p), KERR_NONE);
        assert_code(delete_group(&p), KERR_NONE);
        assert_code(delete_group(&p), KERR_GROUP_ID_NOT_FOUND);
        assert_int_equal(position_of(&p, "t"), -1);
        assert_false(is_listed(&p, 5, NULL, NULL));
        peer_done(&p);
    }
    rig_restart(&g, quick);
    struct peer p = peer_new("doomed", 9);
    wait_loaded(&p);
    assert_true(kstr_eqz(describe(&p, 5)->group_state, "Dead"));
    assert_int_equal(fetch_all(&p, 9)->n_topics, 0);
    peer_done(&p);
}

static void single_positions_are_deleted_where_nobody_reads(void **state)
{
    (void)state;
    struct peer p = member("thinned", 5);

    assert_code(commit(&p, "t", 0, 1), KERR_NONE);
    assert_code(commit(&p, "u", 0, 2), KERR_NONE);
    assert_code(delete_position(&p, "t", 0), KERR_GROUP_SUBSCRIBED_TO_TOPIC);
    assert_code(delete_position(&p, "u", 0), KERR_NONE);
    assert_code(delete_position(&p, "u", 9), KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_code(delete_position(&p, "nothing", 0), KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(position_of(&p, "t"), 1);
    assert_int_equal(position_of(&p, "u"), -1);
    assert_code(leave(&p), KERR_NONE);
    assert_code(delete_position(&p, "t", 0), KERR_NONE);
    assert_code(delete_position(&p, "t", 0), KERR_NONE); /* it is not there: as was asked */
    assert_int_equal(position_of(&p, "t"), -1);
    peer_done(&p);
}

static void positions_go_with_their_topic(void **state)
{
    (void)state;
    struct peer p = peer_new("orphan", 9);

    rig_create_topic(&g, "brief", 1, NULL);
    assert_code(commit(&p, "brief", 0, 9), KERR_NONE);
    assert_code(commit(&p, "t", 0, 3), KERR_NONE);
    rig_delete_topic(&g, "brief");
    while (fetch_all(&p, 9)->n_topics > 1)
        ;
    assert_int_equal(position_of(&p, "t"), 3);
    rig_create_topic(&g, "brief", 1, NULL);
    assert_int_equal(position_of(&p, "brief"), -1);
    peer_done(&p);
}

static void a_commit_may_bring_its_own_retention(void **state)
{
    (void)state;
    struct peer p = peer_new("short", 9);

    for (int version = 2; version <= 4; version++) {
        assert_code(commit_as(&p, version, (struct commit){ .topic = "t", .offset = 1, .retention_ms = 1 }),
                    KERR_NONE);
        while (position_of(&p, "t") != -1)
            ;
        while (is_listed(&p, 5, NULL, NULL)) /* and the group goes with its last position */
            ;
    }
    assert_code(commit_as(&p, 2, (struct commit){ .topic = "t", .offset = 1, .retention_ms = 0 }), KERR_NONE);
    assert_code(commit_as(&p, 2, (struct commit){ .topic = "t", .partition = 1, .retention_ms = 1 }),
                KERR_NONE);
    while (fetch_one_position(&p, 7, "t", 1).offset != -1)
        ;
    assert_int_equal(position_of(&p, "t"), 1); /* -1 is the broker's rule, not "at once" */
    peer_done(&p);
}

/* ---- listing ---- */

static void groups_are_listed_by_state_and_type(void **state)
{
    (void)state;
    struct peer a = member("listed", 5), e = peer_new("listed-empty", 5);

    assert_code(commit(&e, "t", 0, 1), KERR_NONE);
    assert_true(is_listed(&a, 4, "Stable", NULL));
    assert_true(is_listed(&a, 4, "stable", NULL));
    assert_false(is_listed(&a, 4, "Empty", NULL));
    assert_true(is_listed(&e, 5, "Empty", "classic"));
    assert_true(is_listed(&e, 5, NULL, "Classic"));
    assert_false(is_listed(&e, 5, NULL, "consumer"));
    peer_done(&a);
    peer_done(&e);
}

static void groups_are_spread_as_kafka_spreads_them(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        int32_t partition; /* Math.abs(id.hashCode()) % 50 in Java */
    } rows[] = {
        { "", 0 },
        { "g1", 42 },
        { "console-consumer-12345", 6 },
        { "my-group", 12 },
        { "ünïcödé", 49 },
        { "日本語", 43 },
        { "😀 group", 6 },
        { "polygenelubricants", 0 }, /* Integer.MIN_VALUE */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(coordinator_partition_of(kstr_of(rows[i].id), 50), rows[i].partition);
    for (int i = 0; i < 256; i++) { /* any bytes will do */
        char bytes[] = { (char)i, (char)(i * 7), (char)(i * 13) };
        assert_in_range(coordinator_partition_of(kstr_bytes(bytes, sizeof bytes), 50), 0, 49);
    }
}

/* ---- */

static int start(void **state)
{
    (void)state;
    rig_start(&g, quick);
    rig_create_topic(&g, "t", 3, NULL);
    rig_create_topic(&g, "u", 1, NULL);
    struct peer p = peer_new("first", 0);
    find_coordinator(&p, 0); /* makes __consumer_offsets */
    peer_done(&p);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    rig_done(&g);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_lives_through_every_version),
        cmocka_unit_test(positions_are_answered_alike_in_both_ways_of_asking),
        cmocka_unit_test(what_cannot_be_is_refused_before_a_group_is_made),
        cmocka_unit_test(a_sync_without_its_protocol_is_refused),
        cmocka_unit_test(bad_positions_do_not_hinder_good_ones),
        cmocka_unit_test(only_members_commit_while_there_are_any),
        cmocka_unit_test(those_who_wait_are_answered_whatever_connection_dies),
        cmocka_unit_test(answers_keep_the_order_of_their_requests),
        cmocka_unit_test(a_stop_answers_those_who_wait),
        cmocka_unit_test(groups_and_positions_survive_a_restart),
        cmocka_unit_test(a_deleted_group_stays_deleted),
        cmocka_unit_test(single_positions_are_deleted_where_nobody_reads),
        cmocka_unit_test(positions_go_with_their_topic),
        cmocka_unit_test(a_commit_may_bring_its_own_retention),
        cmocka_unit_test(groups_are_listed_by_state_and_type),
        cmocka_unit_test(groups_are_spread_as_kafka_spreads_them),
        cmocka_unit_test(what_cannot_be_read_is_read_later),
        cmocka_unit_test(partitions_that_leave_are_let_go),
    };
    return cmocka_run_group_tests(tests, start, stop) != 0;
}
