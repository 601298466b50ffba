/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a member from waiting to owning partitions: JoinGroup, SyncGroup, and then the committed offsets of what it was
 * given, with the topics' ids, so that a position of a topic that was deleted is none. Each step that fails says whether to
 * begin anew, with which member id, and after how long, or that the member has ended. Its states are member_int.h's. On the
 * loop's thread.
 */
#include <errno.h>
#include <string.h>

#include "lib/client/member_int.h"

enum {
    GRACE_MS = 5000, /* the coordinator answers by the rebalance time-out; the way back takes time, too */
    BACKOFF_STEPS = 4,
};

/* ---- failing, and trying again ---- */
static void load_stop(struct member *m)
{
    positions_fetch_cancel(&m->fetch);
    if (m->asks_id)
        client_refresh_cancel(m->c, &m->load_refresh);
    m->asks_id = false;
}

void join_stop(struct member *m)
{
    timer_clear(m->loop, &m->retry);
    client_cancel(m->c, &m->call);
    load_stop(m);
}

void join_on_retry(struct timer *t)
{
    join_start(container_of(t, struct member, retry));
}

void join_again(struct member *m)
{
    beat_stop(m);
    m->generation = -1;
    if (m->closing) {
        member_leave(m);
        return;
    }
    member_move(m, MEMBER_WAITING);
    int64_t wait_ms = MIN(m->retry_backoff_ms << MIN(m->attempts, BACKOFF_STEPS), m->retry_backoff_ms * 10);
    m->attempts++;
    timer_set(m->loop, &m->retry, member_deadline(m, wait_ms));
}

/* A step towards owning did not succeed. */
static void join_failed(struct member *m, int rc, enum kerr err)
{
    enum member_reaction r = member_react(rc, err);
    KCHECK(r != REACT_NONE);
    if (r == REACT_FATAL)
        member_end(m, rc != 0 ? rc : -kerr_errno(err), err);
    else if (r == REACT_REJOIN && m->state != MEMBER_JOINING && !m->closing)
        join_start(m);
    else if (r == REACT_LOST || r == REACT_FORGOTTEN)
        member_lose(m, r);
    else
        join_again(m);
}

/* ---- JoinGroup ---- */
static void join_take(struct member *m, const struct join_group_response *r)
{
    if (assignor_of(r->protocol_name) < 0) {
        member_end(m, -kerr_errno(KERR_INCONSISTENT_GROUP_PROTOCOL), KERR_INCONSISTENT_GROUP_PROTOCOL);
        return;
    }
    m->generation = r->generation_id;
    m->leads = kstr_eq(r->leader, r->member_id);
    free(m->protocol);
    m->protocol = xstrndup(r->protocol_name.p, (size_t)r->protocol_name.n);
    beat_start(m);
    m->assigned_before = r->skip_assignment;
    if (m->leads) {
        member_move(m, MEMBER_PLANNING);
        plan_start(m, r);
    } else {
        join_sync(m);
    }
}

static void on_joined(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    struct member *m = container_of(call, struct member, call);
    const struct join_group_response *r = response;
    (void)version;
    if (rc == 0)
        err = (enum kerr)r->error_code;
    if (rc == 0 && (err == KERR_NONE || err == KERR_MEMBER_ID_REQUIRED))
        member_set_id(m, r->member_id.p, (size_t)MAX(r->member_id.n, 0));
    if (m->closing)
        member_leave(m);
    else if (rc == 0 && err == KERR_MEMBER_ID_REQUIRED && m->id[0] != '\0')
        join_start(m);
    else if (rc == 0 && err == KERR_NONE)
        join_take(m, r);
    else
        join_failed(m, rc, err);
}

static void join_fill(struct member *m)
{
    struct join_group_request *r = &m->body.join;
    m->subscription.n = 0;
    assign_write_subscription(m->topics, m->n_topics, &m->subscription);
    for (int i = 0; i < ASSIGNORS; i++) {
        m->protocols[i].name = kstr_of(assignor_name((enum assignor)i));
        m->protocols[i].metadata = kstr_bytes(m->subscription.p, m->subscription.n);
    }
    wire_defaults(&wire_join_group_request, r);
    r->group_id = kstr_of(m->group);
    r->session_timeout_ms = m->session_timeout_ms;
    r->rebalance_timeout_ms = m->rebalance_timeout_ms;
    r->member_id = kstr_of(m->id);
    r->group_instance_id = kstr_of(m->instance_id);
    r->protocol_type = kstr_of("consumer");
    r->protocols = m->protocols;
    r->n_protocols = ASSIGNORS;
}

/* JoinGroup and SyncGroup wait in the coordinator for the other members. */
static void join_call(struct member *m, const struct wire_message *request, const void *body,
                      void (*cb)(struct client_call *, int, enum kerr, int16_t, const void *))
{
    m->call = (struct client_call){
        .target = TARGET_COORDINATOR,
        .topic = m->group,
        .request = request,
        .body = body,
        .max_version = -1,
        .deadline_ms = member_deadline(m, (int64_t)m->rebalance_timeout_ms + GRACE_MS),
        .parks = true,
        .cb = cb,
    };
}

static enum kerr judge_join(struct client_call *call, int16_t version, const void *response)
{
    (void)call;
    (void)version;
    return (enum kerr)((const struct join_group_response *)response)->error_code;
}

void join_start(struct member *m)
{
    member_move(m, MEMBER_JOINING);
    beat_stop(m);
    load_stop(m);
    m->generation = -1;
    m->leads = false;
    arena_done(&m->round);
    m->members = NULL;
    m->plan = NULL;
    m->n_members = m->n_plan = 0;
    join_fill(m);
    join_call(m, &wire_join_group_request, &m->body.join, on_joined);
    m->call.judge = judge_join;
    client_call(m->c, &m->call);
}

/* ---- committed offsets ---- */
static void load_start(struct member *m);

static void on_loaded(struct positions_fetch *f, int rc, enum kerr err, const struct position *positions,
                      size_t n)
{
    struct member *m = container_of(f, struct member, fetch);
    enum member_reaction r = member_react(rc, err);
    if (r == REACT_AGAIN) {
        load_start(m);
        return;
    }
    if (r != REACT_NONE) {
        join_failed(m, rc, err);
        return;
    }
    /* both are sorted; what the answer lacks has no position */
    for (size_t i = 0, k = 0; i < m->n_parts; i++) {
        struct position *p = &m->parts[i];
        int d = -1;
        while (k < n && (d = position_compare(&positions[k], p)) < 0)
            k++;
        if (k == n || d != 0)
            continue;
        p->offset = positions[k].offset;
        p->leader_epoch = positions[k].leader_epoch;
        p->err = positions[k].err;
        if (positions[k].metadata != NULL)
            p->metadata = arena_strdup(&m->owned, positions[k].metadata);
    }
    member_move(m, MEMBER_OWNING);
    m->attempts = 0;
    plan_watch(m);
    m->ops->assigned(m, m->parts, m->n_parts);
}

/* The ids of the topics are asked for before the positions: a position that is told later than an id is not of an
 * earlier topic of that name. */
static void load_ids(struct member *m);

static void on_load_id(struct client_refresh *r, int rc)
{
    struct member *m = container_of(r, struct member, load_refresh);
    m->asks_id = false;
    if (rc == 0 && client_topic(m->c, r->topic) != NULL)
        m->parts[m->n_with_id].topic_id = client_topic(m->c, r->topic)->id;
    m->n_with_id++;
    load_ids(m);
}

static void load_ids(struct member *m)
{
    for (; m->n_with_id < m->n_parts; m->n_with_id++) {
        struct position *p = &m->parts[m->n_with_id];
        const struct client_topic *t = client_topic(m->c, p->topic);
        if (m->n_with_id > 0 && strcmp(p[-1].topic, p->topic) == 0) {
            p->topic_id = p[-1].topic_id;
        } else if (t != NULL) {
            p->topic_id = t->id;
        } else {
            m->asks_id = true;
            m->load_refresh = (struct client_refresh){ .topic = p->topic,
                                                       .deadline_ms = member_deadline(m, m->session_timeout_ms),
                                                       .cb = on_load_id };
            client_refresh(m->c, &m->load_refresh);
            return;
        }
    }
    load_start(m);
}

static void load_start(struct member *m)
{
    m->fetch.group = m->group;
    m->fetch.wanted = m->parts;
    m->fetch.n_wanted = m->n_parts;
    m->fetch.deadline_ms = member_deadline(m, m->session_timeout_ms);
    m->fetch.cb = on_loaded;
    positions_fetch(m->c, &m->fetch);
}

/* ---- SyncGroup ---- */
/* Sorted, and each once, whatever another client's assignor made of it. */
static void parts_take(struct member *m, const struct assign_part *parts, size_t n)
{
    arena_done(&m->owned);
    m->parts = arena_array(&m->owned, n, sizeof *m->parts);
    for (size_t i = 0; i < n; i++)
        m->parts[i] = (struct position){
            .topic = arena_printf(&m->owned, "%.*s", KSTR_FMT(parts[i].topic)),
            .partition = parts[i].partition,
            .offset = -1,
            .leader_epoch = -1,
        };
    m->n_parts = positions_sort(m->parts, n);
}

static void on_synced(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    struct member *m = container_of(call, struct member, call);
    const struct sync_group_response *r = response;
    CLEANUP(arena_done) struct arena a;
    arena_init(&a);
    struct assign_part *parts = NULL;
    size_t n = 0;
    (void)version;
    if (rc == 0)
        err = (enum kerr)r->error_code;
    if (rc != 0 || err != KERR_NONE) {
        join_failed(m, rc, err);
        return;
    }
    if (r->assignment.n > 0 && assign_read_parts(r->assignment, &a, &parts, &n) != 0) {
        member_end(m, -EBADMSG, KERR_NONE);
        return;
    }
    member_move(m, MEMBER_LOADING);
    parts_take(m, parts, n);
    m->n_with_id = 0;
    load_ids(m);
}

static enum kerr judge_sync(struct client_call *call, int16_t version, const void *response)
{
    (void)call;
    (void)version;
    return (enum kerr)((const struct sync_group_response *)response)->error_code;
}

/* The leader's answer has everybody's partitions, the others' none. */
static void sync_fill(struct member *m)
{
    struct sync_group_request *r = &m->body.sync;
    wire_defaults(&wire_sync_group_request, r);
    r->group_id = kstr_of(m->group);
    r->generation_id = m->generation;
    r->member_id = kstr_of(m->id);
    r->group_instance_id = kstr_of(m->instance_id);
    r->protocol_type = kstr_of("consumer");
    r->protocol_name = kstr_of(m->protocol);
    size_t n = m->assigned_before ? 0 : m->n_members;
    r->assignments = WIRE_NEW(&m->round, sync_group_request_assignments, n);
    r->n_assignments = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
        assign_write_parts(m->members[i].parts, m->members[i].n_parts, &b);
        r->assignments[i].member_id = m->members[i].id;
        r->assignments[i].assignment = kstr_bytes(arena_dup(&m->round, b.p, b.n), b.n);
    }
}

void join_sync(struct member *m)
{
    member_move(m, MEMBER_SYNCING);
    sync_fill(m);
    join_call(m, &wire_sync_group_request, &m->body.sync, on_synced);
    m->call.judge = judge_sync;
    client_call(m->c, &m->call);
}
