/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OffsetFetch, OffsetCommit and ListOffsets; see positions.h. On the loop's thread.
 *
 * A struct that was called for may be freed or used again by its cb, so whatever a cb is given lives in
 * memory that was taken out of the struct before.
 */
#include "lib/client/positions.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/check.h"

enum {
    OFFSET_FETCH_NEWEST = 7, /* the last for one group */
    OFFSET_COMMIT_BY_NAME = 9,
    READ_COMMITTED = 1,
};

/* ---- positions in order ---- */
int position_compare(const struct position *a, const struct position *b)
{
    int d = strcmp(a->topic, b->topic);
    return d != 0 ? d : a->partition < b->partition ? -1 : a->partition > b->partition;
}

static int compare_each(const void *x, const void *y)
{
    return position_compare(x, y);
}

static int compare_at(const void *x, const void *y)
{
    return position_compare(*(const struct position *const *)x, *(const struct position *const *)y);
}

size_t positions_sort(struct position *p, size_t n)
{
    size_t kept = 0;
    qsort(p, n, sizeof *p, compare_each);
    for (size_t i = 0; i < n; i++) {
        if (kept == 0 || position_compare(&p[kept - 1], &p[i]) != 0)
            p[kept++] = p[i];
    }
    return kept;
}

static struct position **positions_in_order(struct arena *a, struct position *p, size_t n)
{
    struct position **order = arena_array(a, n, sizeof *order);
    for (size_t i = 0; i < n; i++)
        order[i] = &p[i];
    qsort(order, n, sizeof *order, compare_at);
    return order;
}

static const char *arena_text(struct arena *a, struct kstr s)
{
    return kstr_is_null(s) ? NULL : arena_printf(a, "%.*s", KSTR_FMT(s));
}

/* ---- OffsetFetch ---- */
/* Errors of partitions that pass, too: with require_stable a transaction may still be open. */
static enum kerr fetch_judge(struct client_call *call, int16_t version, const void *response)
{
    const struct offset_fetch_response *r = response;
    (void)call;
    (void)version;
    if (r->error_code != KERR_NONE)
        return (enum kerr)r->error_code;
    for (int32_t i = 0; i < r->n_topics; i++) {
        for (int32_t k = 0; k < r->topics[i].n_partitions; k++) {
            int16_t err = r->topics[i].partitions[k].error_code;
            if (kerr_retriable(err) && err != KERR_UNKNOWN_TOPIC_OR_PARTITION)
                return (enum kerr)err;
        }
    }
    return KERR_NONE;
}

static size_t fetch_take(const struct offset_fetch_response *r, struct arena *a, struct position **ret)
{
    size_t n = 0, made = 0;
    for (int32_t i = 0; i < r->n_topics; i++)
        n += (size_t)r->topics[i].n_partitions;
    struct position *positions = arena_array(a, n, sizeof *positions);
    for (int32_t i = 0; i < r->n_topics; i++) {
        const struct offset_fetch_response_topics *t = &r->topics[i];
        const char *topic = arena_text(a, t->name);
        for (int32_t k = 0; k < t->n_partitions; k++) {
            const struct offset_fetch_response_partitions *p = &t->partitions[k];
            positions[made++] = (struct position){
                .topic = topic,
                .partition = p->partition_index,
                .offset = p->error_code == KERR_NONE ? p->committed_offset : -1,
                .leader_epoch = p->committed_leader_epoch,
                .metadata = arena_text(a, p->metadata),
                .err = (enum kerr)p->error_code,
            };
        }
    }
    *ret = positions;
    return positions_sort(positions, made);
}

static void fetch_on_end(struct client_call *call, int rc, enum kerr err, int16_t version,
                         const void *response)
{
    (void)version;
    struct positions_fetch *f = container_of(call, struct positions_fetch, call);
    const struct offset_fetch_response *r = response;
    CLEANUP(arena_done) struct arena a = f->arena;
    arena_init(&f->arena);
    struct position *positions = NULL;
    size_t n = 0;
    if (rc == 0 && r->error_code != KERR_NONE) {
        err = (enum kerr)r->error_code;
        rc = -kerr_errno(err);
    } else if (rc == 0) {
        n = fetch_take(r, &a, &positions);
    }
    f->cb(f, rc, err, positions, n);
}

static void fetch_fill(struct positions_fetch *f)
{
    wire_defaults(&wire_offset_fetch_request, &f->request);
    f->request.group_id = kstr_of(f->group);
    f->request.require_stable = true;
    f->request.n_topics = -1;
    if (f->all)
        return;
    struct position **order = positions_in_order(&f->arena, f->wanted, f->n_wanted);
    int32_t *indexes = arena_array(&f->arena, f->n_wanted, sizeof *indexes);
    struct offset_fetch_request_topics *t = NULL;
    f->request.n_topics = 0;
    f->request.topics = arena_array(&f->arena, f->n_wanted, sizeof *f->request.topics);
    for (size_t i = 0; i < f->n_wanted; i++) {
        indexes[i] = order[i]->partition;
        if (t == NULL || strcmp(order[i - 1]->topic, order[i]->topic) != 0) {
            t = &f->request.topics[f->request.n_topics++];
            t->name = kstr_of(order[i]->topic);
            t->partition_indexes = &indexes[i];
        }
        t->n_partition_indexes++;
    }
}

void positions_fetch(struct client *c, struct positions_fetch *f)
{
    f->c = c;
    arena_init(&f->arena);
    fetch_fill(f);
    f->call = (struct client_call){
        .target = TARGET_COORDINATOR,
        .topic = f->group,
        .request = &wire_offset_fetch_request,
        .body = &f->request,
        .max_version = OFFSET_FETCH_NEWEST,
        .deadline_ms = f->deadline_ms,
        .judge = fetch_judge,
        .cb = fetch_on_end,
    };
    client_call(c, &f->call);
}

void positions_fetch_cancel(struct positions_fetch *f)
{
    if (f->call.state == NULL)
        return;
    client_cancel(f->c, &f->call);
    arena_done(&f->arena);
}

/* ---- OffsetCommit ---- */
/* It may pass, but not for a topic that has gone. */
static bool commit_may_pass(int16_t err)
{
    return kerr_retriable((enum kerr)err) && err != KERR_UNKNOWN_TOPIC_OR_PARTITION && err != KERR_UNKNOWN_TOPIC_ID;
}

static enum kerr commit_judge(struct client_call *call, int16_t version, const void *response)
{
    const struct offset_commit_response *r = response;
    (void)call;
    (void)version;
    for (int32_t i = 0; i < r->n_topics; i++) {
        for (int32_t k = 0; k < r->topics[i].n_partitions; k++) {
            int16_t err = r->topics[i].partitions[k].error_code;
            if (commit_may_pass(err))
                return (enum kerr)err;
        }
    }
    return KERR_NONE;
}

/* The name of the topic that the answer means; NULL: none that was asked for. */
static const char *commit_topic(struct positions_commit *pc, int16_t version, const struct offset_commit_response_topics *t)
{
    if (version <= OFFSET_COMMIT_BY_NAME)
        return arena_text(&pc->arena, t->name);
    for (int32_t i = 0; i < pc->request.n_topics; i++) {
        if (uuid_eq(&pc->request.topics[i].topic_id, &t->topic_id))
            return pc->request.topics[i].name.p;
    }
    return NULL;
}

/* Tells each position what became of it; returns the first error. What the broker says nothing of is not
 * stored. */
static enum kerr commit_take(struct positions_commit *pc, int16_t version, const struct offset_commit_response *r)
{
    struct position **order = positions_in_order(&pc->arena, pc->positions, pc->n);
    for (size_t i = 0; i < pc->n; i++)
        pc->positions[i].err = KERR_UNKNOWN_SERVER_ERROR;
    for (int32_t i = 0; i < r->n_topics; i++) {
        const struct offset_commit_response_topics *t = &r->topics[i];
        struct position sought = { .topic = commit_topic(pc, version, t) }, *key = &sought;
        if (sought.topic == NULL)
            continue;
        for (int32_t k = 0; k < t->n_partitions; k++) {
            sought.partition = t->partitions[k].partition_index;
            struct position **found = bsearch(&key, order, pc->n, sizeof *order, compare_at);
            if (found != NULL)
                (*found)->err = (enum kerr)t->partitions[k].error_code;
        }
    }
    for (size_t i = 0; i < pc->n; i++) {
        if (pc->positions[i].err != KERR_NONE)
            return pc->positions[i].err;
    }
    return KERR_NONE;
}

static void commit_on_end(struct client_call *call, int rc, enum kerr err, int16_t version,
                          const void *response)
{
    struct positions_commit *pc = container_of(call, struct positions_commit, call);
    if (rc == 0) {
        err = commit_take(pc, version, response);
        rc = -kerr_errno(err);
    } else {
        for (size_t i = 0; i < pc->n; i++)
            pc->positions[i].err = err;
    }
    arena_done(&pc->arena);
    pc->cb(pc, rc, err);
}

static void commit_fill(struct positions_commit *pc)
{
    struct offset_commit_request *r = &pc->request;
    wire_defaults(&wire_offset_commit_request, r);
    r->group_id = kstr_of(pc->group);
    r->generation_id_or_member_epoch = pc->generation;
    r->member_id = kstr_of(pc->member_id);
    r->group_instance_id = kstr_of(pc->instance_id);
    struct position **order = positions_in_order(&pc->arena, pc->positions, pc->n);
    struct offset_commit_request_partitions *parts =
        WIRE_NEW(&pc->arena, offset_commit_request_partitions, pc->n);
    r->topics = WIRE_NEW(&pc->arena, offset_commit_request_topics, pc->n);
    struct offset_commit_request_topics *t = NULL;
    for (size_t i = 0; i < pc->n; i++) {
        const struct position *p = order[i];
        KCHECK(p->offset >= 0);
        parts[i].partition_index = p->partition;
        parts[i].committed_offset = p->offset;
        parts[i].committed_leader_epoch = p->leader_epoch;
        parts[i].committed_metadata = kstr_of(p->metadata != NULL ? p->metadata : "");
        if (t == NULL || strcmp(order[i - 1]->topic, p->topic) != 0) {
            t = &r->topics[r->n_topics++];
            t->name = kstr_of(p->topic);
            t->topic_id = p->topic_id;
            t->partitions = &parts[i];
        }
        t->n_partitions++;
    }
}

static bool have_ids(const struct positions_commit *pc)
{
    for (size_t i = 0; i < pc->n; i++) {
        if (uuid_is_zero(&pc->positions[i].topic_id))
            return false;
    }
    return true;
}

void positions_commit(struct client *c, struct positions_commit *pc)
{
    pc->c = c;
    arena_init(&pc->arena);
    commit_fill(pc);
    pc->call = (struct client_call){
        .target = TARGET_COORDINATOR,
        .topic = pc->group,
        .request = &wire_offset_commit_request,
        .body = &pc->request,
        .max_version = have_ids(pc) ? -1 : OFFSET_COMMIT_BY_NAME,
        .deadline_ms = pc->deadline_ms,
        .judge = commit_judge,
        .cb = commit_on_end,
    };
    client_call(c, &pc->call);
}

void positions_commit_cancel(struct positions_commit *pc)
{
    if (pc->call.state == NULL)
        return;
    client_cancel(pc->c, &pc->call);
    arena_done(&pc->arena);
}

/* ---- ListOffsets ---- */
static const struct list_offsets_response_partitions *find_answer(const struct list_offsets_response *r)
{
    return r->n_topics == 1 && r->topics[0].n_partitions == 1 ? &r->topics[0].partitions[0] : NULL;
}

static enum kerr find_judge(struct client_call *call, int16_t version, const void *response)
{
    const struct list_offsets_response_partitions *p = find_answer(response);
    (void)call;
    (void)version;
    return p != NULL ? (enum kerr)p->error_code : KERR_UNKNOWN_SERVER_ERROR;
}

static void find_on_end(struct client_call *call, int rc, enum kerr err, int16_t version,
                        const void *response)
{
    struct position_find *f = container_of(call, struct position_find, call);
    int64_t offset = -1;
    if (rc == 0 && (err = find_judge(call, version, response)) != KERR_NONE)
        rc = -kerr_errno(err);
    else if (rc == 0)
        offset = find_answer(response)->offset;
    f->cb(f, rc, err, offset);
}

void position_find(struct client *c, struct position_find *f)
{
    f->c = c;
    f->request_partition = (struct list_offsets_request_partitions){ .partition_index = f->partition,
                                                                     .current_leader_epoch = -1,
                                                                     .timestamp = f->at };
    f->request_topic = (struct list_offsets_request_topics){ .name = kstr_of(f->topic),
                                                             .partitions = &f->request_partition,
                                                             .n_partitions = 1 };
    f->request = (struct list_offsets_request){
        .replica_id = -1, .isolation_level = READ_COMMITTED, .topics = &f->request_topic, .n_topics = 1
    };
    f->call = (struct client_call){
        .target = TARGET_LEADER,
        .topic = f->topic,
        .topic_id = f->topic_id,
        .partition = f->partition,
        .request = &wire_list_offsets_request,
        .body = &f->request,
        .max_version = -1,
        .deadline_ms = f->deadline_ms,
        .judge = find_judge,
        .cb = find_on_end,
    };
    client_call(c, &f->call);
}

void position_find_cancel(struct position_find *f)
{
    if (f->call.state != NULL)
        client_cancel(f->c, &f->call);
}
