/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A member of a consumer group: joins, is given partitions by whoever leads, looks up their positions and moves them on,
 * leaves, or says nothing any more. Positions that members commit are numbers that only grow, so that one that was lost shows.
 *
 * The leader writes into each assignment whom and which generation it is for: "GENERATION MEMBER|TOPIC.PARTITION;..." with the
 * truth's numbers of topics.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/kerr.h"
#include "tests/sim/marks.h"
#include "tests/sim/play.h"

enum { MINE_MAX = 64, SESSION_MS = 6000, REBALANCE_MS = 8000 };

enum member_state { MEMBER_OUT, MEMBER_JOINING, MEMBER_SYNCING, MEMBER_IN };

struct member {
    struct rawclient c; /* first */
    int group;
    enum member_state state;
    char id[80];
    int32_t generation;
    bool leads;
    struct mine {
        int topic, partition;
        bool is_known; /* its position was looked up */
    } mine[MINE_MAX];
    int n_mine;
    int64_t not_before_ns, beat_ns;
    bool must_find; /* the coordinator is to be asked for first */
};

static struct member *of(struct rawclient *c)
{
    return container_of(c, struct member, c);
}

static struct kstr group_name(const struct member *m)
{
    return kstr_of(m->c.play->truth.groups[m->group].name);
}

static void start(struct rawclient *c)
{
    struct member *m = of(c);
    m->group = (int)rnd_below(&c->rnd, 2);
    m->must_find = true;
}

/* ---- questions ---- */
static void ask_find(struct member *m)
{
    struct find_coordinator_request q;
    struct kstr key = group_name(m);
    wire_defaults(&wire_find_coordinator_request, &q);
    q.coordinator_keys = &key;
    q.n_coordinator_keys = 1;
    client_ask(&m->c, &wire_find_coordinator_request, 4, &q);
}

static void ask_join(struct member *m)
{
    struct join_group_request_protocols protocol = { .name = kstr_of("sim"), .metadata = kstr_of("x") };
    struct join_group_request q;
    wire_defaults(&wire_join_group_request, &q);
    q.group_id = group_name(m);
    q.session_timeout_ms = SESSION_MS;
    q.rebalance_timeout_ms = REBALANCE_MS;
    q.member_id = kstr_of(m->id);
    q.group_instance_id = KSTR_NULL;
    q.protocol_type = kstr_of("consumer");
    q.protocols = &protocol;
    q.n_protocols = 1;
    m->state = MEMBER_JOINING;
    m->n_mine = 0;
    struct asked *asked = client_ask(&m->c, &wire_join_group_request, 7, &q);
    asked->patience_ns = 20 * SIM_S;
}

/* Whoever leads gives each partition of each topic to one member. */
static void ask_sync(struct member *m, const struct join_group_response *rsp, struct arena *a)
{
    const struct truth *t = client_truth(&m->c);
    struct sync_group_request q;
    wire_defaults(&wire_sync_group_request, &q);
    q.group_id = group_name(m);
    q.generation_id = m->generation;
    q.member_id = kstr_of(m->id);
    q.group_instance_id = KSTR_NULL;
    q.protocol_type = kstr_of("consumer");
    q.protocol_name = kstr_of("sim");
    if (m->leads) {
        q.n_assignments = rsp->n_members;
        q.assignments = WIRE_NEW(a, sync_group_request_assignments, rsp->n_members);
        for (int32_t i = 0; i < rsp->n_members; i++) {
            struct bytebuf b = { 0 };
            struct kstr id = rsp->members[i].member_id;
            bytebuf_printf(&b, "%d %.*s|", m->generation, (int)id.n, id.p);
            int k = 0;
            for (int topic = 0; topic < t->n_topics; topic++)
                for (int p = 0; p < t->topics[topic].n_partitions && !t->topics[topic].delete_asked; p++)
                    if (!t->topics[topic].internal && k++ % rsp->n_members == i)
                        bytebuf_printf(&b, "%d.%d;", topic, p);
            q.assignments[i].member_id = id;
            q.assignments[i].assignment = kstr_bytes(arena_dup(a, b.p, b.n), b.n);
            bytebuf_done(&b);
        }
    }
    m->state = MEMBER_SYNCING;
    struct asked *asked = client_ask(&m->c, &wire_sync_group_request, 5, &q);
    asked->patience_ns = 20 * SIM_S;
}

static void ask_heartbeat(struct member *m)
{
    struct heartbeat_request q = { .group_id = group_name(m),
                                   .generation_id = m->generation,
                                   .member_id = kstr_of(m->id),
                                   .group_instance_id = KSTR_NULL };
    client_ask(&m->c, &wire_heartbeat_request, 4, &q);
}

static void ask_leave(struct member *m)
{
    struct leave_group_request_members one = { .member_id = kstr_of(m->id), .group_instance_id = KSTR_NULL, .reason = KSTR_NULL };
    struct leave_group_request q;
    wire_defaults(&wire_leave_group_request, &q);
    q.group_id = group_name(m);
    q.members = &one;
    q.n_members = 1;
    client_ask(&m->c, &wire_leave_group_request, 5, &q);
    m->state = MEMBER_OUT;
    m->id[0] = '\0';
    m->not_before_ns = sim_now(client_sim(&m->c)) + rnd_log(&m->c.rnd, 100 * SIM_MS, 10 * SIM_S);
}

static void ask_position(struct member *m, const struct mine *mine)
{
    const struct truth *t = client_truth(&m->c);
    int32_t partition = mine->partition;
    struct offset_fetch_request_groups_topics topic = { .name = kstr_of(""),
                                                        .topic_id = t->topics[mine->topic].id,
                                                        .partition_indexes = &partition,
                                                        .n_partition_indexes = 1 };
    struct offset_fetch_request_groups group = { .group_id = group_name(m),
                                                 .member_id = KSTR_NULL,
                                                 .member_epoch = -1,
                                                 .topics = &topic,
                                                 .n_topics = 1 };
    struct offset_fetch_request q;
    wire_defaults(&wire_offset_fetch_request, &q);
    q.groups = &group;
    q.n_groups = 1;
    struct asked *asked = client_ask(&m->c, &wire_offset_fetch_request, 10, &q);
    asked->a = mine->topic;
    asked->b = mine->partition;
    asked->c = t->groups[m->group].acked[mine->topic][mine->partition];
}

static void ask_commit(struct member *m, const struct mine *mine)
{
    struct truth *t = client_truth(&m->c);
    int64_t position = t->groups[m->group].asked[mine->topic][mine->partition] + 1;
    struct offset_commit_request_partitions part = { .partition_index = mine->partition,
                                                     .committed_offset = position,
                                                     .committed_leader_epoch = -1,
                                                     .committed_metadata = KSTR_NULL };
    struct offset_commit_request_topics topic = { .name = kstr_of(""),
                                                  .topic_id = t->topics[mine->topic].id,
                                                  .partitions = &part,
                                                  .n_partitions = 1 };
    struct offset_commit_request q;
    wire_defaults(&wire_offset_commit_request, &q);
    q.group_id = group_name(m);
    bool late = m->generation > 1 && rnd_one_in(&m->c.rnd, 20); /* as if it had not heard of the rebalance */
    q.generation_id_or_member_epoch = late ? m->generation - 1 : m->generation;
    q.member_id = kstr_of(m->id);
    q.group_instance_id = KSTR_NULL;
    q.topics = &topic;
    q.n_topics = 1;
    if (!late)
        truth_commit_asked(t, m->group, mine->topic, mine->partition, position);
    struct asked *asked = client_ask(&m->c, &wire_offset_commit_request, 10, &q);
    asked->a = mine->topic;
    asked->b = mine->partition;
    asked->c = late ? -1 : position;
}

static void work(struct member *m)
{
    struct rawclient *c = &m->c;
    if (sim_now(client_sim(c)) >= m->beat_ns) {
        m->beat_ns = sim_now(client_sim(c)) + 2 * SIM_S;
        ask_heartbeat(m);
        return;
    }
    if (rnd_one_in(&c->rnd, 300)) {
        ask_leave(m);
        return;
    }
    if (m->n_mine == 0)
        return;
    struct mine *mine = &m->mine[rnd_below(&c->rnd, (uint64_t)m->n_mine)];
    if (client_truth(c)->topics[mine->topic].delete_asked)
        return;
    if (!mine->is_known || rnd_one_in(&c->rnd, 5))
        ask_position(m, mine);
    else
        ask_commit(m, mine);
}

static void go_on(struct member *m)
{
    struct rawclient *c = &m->c;
    if (!c->is_open || c->n_asked > 0 || sim_now(client_sim(c)) < m->not_before_ns)
        return;
    if (m->must_find) {
        ask_find(m);
        return;
    }
    if (m->state != MEMBER_IN)
        ask_join(m);
    else
        work(m);
}

static void opened(struct rawclient *c)
{
    go_on(of(c));
}

static void closed(struct rawclient *c)
{
    struct member *m = of(c);
    if (m->state != MEMBER_IN)
        m->state = MEMBER_OUT;
}

static void tick(struct rawclient *c)
{
    struct member *m = of(c);
    if (c->end == NULL)
        client_connect(c);
    if (rnd_one_in(&c->rnd, 2000)) { /* dies, and comes back as somebody else */
        client_close(c);
        m->state = MEMBER_OUT;
        m->id[0] = '\0';
        m->not_before_ns = sim_now(client_sim(c)) + rnd_log(&c->rnd, SIM_S, 10 * SIM_S);
    }
    go_on(m);
    client_tick_in(c, rnd_log(&c->rnd, 5 * SIM_MS, SIM_S));
}

/* ---- answers ---- */
static void later(struct member *m)
{
    m->not_before_ns = sim_now(client_sim(&m->c)) + rnd_range(&m->c.rnd, 1, 500 * SIM_MS);
}

static void failed(struct member *m, int16_t err)
{
    sim_note(client_sim(&m->c), "group error", m->c.number, err, m->state);
    play_mark_error(m->c.play, API_JOIN_GROUP, err);
    later(m);
    switch (err) {
    case KERR_UNKNOWN_MEMBER_ID:
        m->id[0] = '\0';
        m->state = MEMBER_OUT;
        return;
    case KERR_ILLEGAL_GENERATION:
    case KERR_REBALANCE_IN_PROGRESS:
        m->state = MEMBER_OUT;
        return;
    case KERR_COORDINATOR_NOT_AVAILABLE:
    case KERR_NOT_COORDINATOR:
        m->must_find = true;
        return;
    default:
        if (m->state != MEMBER_IN)
            m->state = MEMBER_OUT;
        return;
    }
}

static void answered_join(struct member *m, const struct join_group_response *rsp, struct arena *a)
{
    struct rawclient *c = &m->c;
    if (rsp->member_id.n > 0 && rsp->member_id.n < (int)sizeof m->id) {
        memcpy(m->id, rsp->member_id.p, (size_t)rsp->member_id.n);
        m->id[rsp->member_id.n] = '\0';
    }
    if (rsp->error_code == KERR_MEMBER_ID_REQUIRED) {
        m->state = MEMBER_OUT;
        return;
    }
    if (rsp->error_code != 0) {
        failed(m, rsp->error_code);
        return;
    }
    struct truth_group *g = &client_truth(c)->groups[m->group];
    g->generation = MAX(g->generation, rsp->generation_id);
    m->generation = rsp->generation_id;
    m->leads = kstr_eq(rsp->leader, kstr_of(m->id));
    ask_sync(m, rsp, a);
}

static void answered_sync(struct member *m, const struct sync_group_response *rsp)
{
    char text[2048] = "", head[128];
    if (rsp->error_code != 0) {
        failed(m, rsp->error_code);
        return;
    }
    if (rsp->assignment.n > 0)
        memcpy(text, rsp->assignment.p, MIN((size_t)rsp->assignment.n, sizeof text - 1));
    int n = snprintf(head, sizeof head, "%d %s|", m->generation, m->id);
    if (text[0] != '\0' && strncmp(text, head, (size_t)n) != 0)
        sim_fail(client_sim(&m->c), "C11", "group %d: %s, generation %d, is given \"%.40s\"", m->group, m->id, m->generation, text);
    m->n_mine = 0;
    char *p = text + (text[0] == '\0' ? 0 : n);
    for (int used; m->n_mine < MINE_MAX; p += used) {
        struct mine *mine = &m->mine[m->n_mine];
        used = 0;
        if (sscanf(p, "%d.%d;%n", &mine->topic, &mine->partition, &used) != 2 || used == 0)
            break;
        mine->is_known = false;
        m->n_mine++;
    }
    m->state = MEMBER_IN;
}

static void answered_position(struct member *m, const struct asked *q, const struct offset_fetch_response *rsp)
{
    struct truth *t = client_truth(&m->c);
    if (rsp->n_groups != 1 || rsp->groups[0].error_code != 0) {
        failed(m, rsp->n_groups == 1 ? rsp->groups[0].error_code : -1);
        return;
    }
    if (rsp->groups[0].n_topics != 1 || rsp->groups[0].topics[0].n_partitions != 1)
        return;
    const struct offset_fetch_response_groups_topics_partitions *p = &rsp->groups[0].topics[0].partitions[0];
    if (p->error_code != 0) {
        failed(m, p->error_code);
        return;
    }
    if (t->topics[q->a].delete_asked)
        return;
    truth_commit_shown(t, m->group, (int)q->a, (int)q->b, p->committed_offset, q->c);
    for (int i = 0; i < m->n_mine; i++)
        if (m->mine[i].topic == q->a && m->mine[i].partition == q->b)
            m->mine[i].is_known = true;
}

static void answered_commit(struct member *m, const struct asked *q, const struct offset_commit_response *rsp)
{
    if (rsp->n_topics != 1 || rsp->topics[0].n_partitions != 1)
        return;
    int16_t err = rsp->topics[0].partitions[0].error_code;
    if (q->c < 0 && err == 0)
        sim_fail(client_sim(&m->c), "C11", "member %d commits for the generation before its own, and is believed", m->c.number);
    if (q->c < 0) {
        MARK_IF(err == KERR_ILLEGAL_GENERATION, "a commit of an old generation was refused");
        return;
    }
    if (err == 0)
        truth_commit_acked(client_truth(&m->c), m->group, (int)q->a, (int)q->b, q->c);
    else
        failed(m, err);
}

static void answered(struct rawclient *c, struct asked *q, void *answer, struct arena *a)
{
    struct member *m = of(c);
    switch (q->api) {
    case API_FIND_COORDINATOR: {
        const struct find_coordinator_response *rsp = answer;
        m->must_find = rsp->n_coordinators != 1 || rsp->coordinators[0].error_code != 0;
        later(m);
        break;
    }
    case API_JOIN_GROUP:
        answered_join(m, answer, a);
        break;
    case API_SYNC_GROUP:
        answered_sync(m, answer);
        break;
    case API_HEARTBEAT: {
        const struct heartbeat_response *rsp = answer;
        if (rsp->error_code != 0)
            failed(m, rsp->error_code);
        break;
    }
    case API_OFFSET_FETCH:
        answered_position(m, q, answer);
        break;
    case API_OFFSET_COMMIT:
        answered_commit(m, q, answer);
        break;
    default:
        break;
    }
    go_on(m);
}

const struct client_kind client_member = {
    .name = "member",
    .size = sizeof(struct member),
    .start = start,
    .opened = opened,
    .answered = answered,
    .closed = closed,
    .tick = tick,
};
