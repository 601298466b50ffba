/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The partitions of a metadata response, and where they begin and end: asked of each leader with one request
 * for all it leads. klog's own brokers tell it all in one answer (KlogStat), others in two (ListOffsets). One
 * thread.
 */
#include "src/topic_entries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TIMESTAMP_LATEST = -1, TIMESTAMP_EARLIEST = -2 };

/* ---- the list ---- */
static int part_compare(const void *x, const void *y)
{
    const struct part *a = x, *b = y;
    int32_t na = a->topic->name.n, nb = b->topic->name.n;
    int d = memcmp(a->topic->name.p, b->topic->name.p, (size_t)MIN(na, nb));

    if (d != 0 || na != nb)
        return d != 0 ? d : na < nb ? -1 : 1;
    return a->meta->partition_index < b->meta->partition_index
               ? -1
               : a->meta->partition_index > b->meta->partition_index;
}

static void topic_complain(const struct session *s, const struct metadata_response_topics *t)
{
    char name[256];

    snprintf(name, sizeof name, "%.*s", KSTR_FMT(t->name));
    complain_kerr(s->args, name, t->error_code, KSTR_NULL);
}

size_t parts_list(struct session *s, const struct metadata_response *md, struct part **ret, bool *ret_failed)
{
    size_t n = 0, made = 0;

    for (int32_t i = 0; i < md->n_topics; i++)
        n += (size_t)md->topics[i].n_partitions;
    struct part *parts = arena_array(&s->arena, n, sizeof *parts);
    *ret_failed = false;
    for (int32_t i = 0; i < md->n_topics; i++) {
        const struct metadata_response_topics *t = &md->topics[i];
        if (t->error_code != KERR_NONE && t->n_partitions == 0) {
            topic_complain(s, t);
            *ret_failed = true;
            continue;
        }
        for (int32_t k = 0; k < t->n_partitions; k++)
            parts[made++] = (struct part){ t, &t->partitions[k], -1, -1, -1, -1, -1, KERR_NONE };
    }
    qsort(parts, made, sizeof *parts, part_compare);
    *ret = parts;
    return made;
}

void parts_complain(const struct session *s, const struct part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char what[300];
        if (parts[i].err == KERR_NONE)
            continue;
        snprintf(what, sizeof what, "%.*s partition %d", KSTR_FMT(parts[i].topic->name),
                 parts[i].meta->partition_index);
        complain_kerr(s->args, what, parts[i].err, KSTR_NULL);
    }
}

static struct part *part_find(struct part *parts, size_t n, struct kstr topic, int32_t index)
{
    for (size_t i = 0; i < n; i++) {
        if (parts[i].meta->partition_index == index && kstr_eq(parts[i].topic->name, topic))
            return &parts[i];
    }
    return NULL;
}

/* ---- ListOffsets ---- */
static enum kerr judge_list_offsets(struct client_call *call, int16_t version, const void *response)
{
    const struct list_offsets_response *r = response;

    (void)call, (void)version;
    for (int32_t i = 0; i < r->n_topics; i++) {
        for (int32_t k = 0; k < r->topics[i].n_partitions; k++) {
            int err = r->topics[i].partitions[k].error_code;
            if (kerr_retriable(err) && err != KERR_UNKNOWN_TOPIC_OR_PARTITION)
                return (enum kerr)err;
        }
    }
    return KERR_NONE;
}

/* One request to one leader for its partitions among parts; they are sorted by topic. */
static void list_offsets_request_fill(struct session *s, const struct part *parts, size_t n, int32_t leader,
                                      int64_t timestamp_ms, struct list_offsets_request *req)
{
    wire_defaults(&wire_list_offsets_request, req);
    req->replica_id = -1;
    req->topics = arena_array(&s->arena, n, sizeof *req->topics);
    struct list_offsets_request_topics *t = NULL;
    for (size_t i = 0; i < n; i++) {
        if (parts[i].meta->leader_id != leader)
            continue;
        if (t == NULL || !kstr_eq(t->name, parts[i].topic->name)) {
            t = &req->topics[req->n_topics++];
            t->name = parts[i].topic->name;
            t->partitions =
                arena_array(&s->arena, (size_t)parts[i].topic->n_partitions, sizeof *t->partitions);
        }
        struct list_offsets_request_partitions *p = &t->partitions[t->n_partitions++];
        p->partition_index = parts[i].meta->partition_index;
        p->current_leader_epoch = -1;
        p->timestamp = timestamp_ms;
    }
}

static void list_offsets_take(struct part *p, int64_t timestamp_ms,
                              const struct list_offsets_response_partitions *r)
{
    p->err = r->error_code;
    if (r->error_code != KERR_NONE)
        return;
    if (timestamp_ms == TIMESTAMP_EARLIEST) {
        p->start_offset = r->offset;
    } else if (timestamp_ms == TIMESTAMP_LATEST) {
        p->end_offset = r->offset;
    } else {
        p->at_offset = r->offset;
        p->at_timestamp = r->timestamp;
    }
}

static bool leader_list_offsets(struct session *s, struct part *parts, size_t n, int32_t leader,
                                int64_t timestamp_ms)
{
    struct list_offsets_request req;

    list_offsets_request_fill(s, parts, n, leader, timestamp_ms, &req);
    const struct list_offsets_response *r =
        session_call(s, &(struct session_call){ .target = TARGET_BROKER,
                                                .broker_id = leader,
                                                .request = &wire_list_offsets_request,
                                                .body = &req,
                                                .judge = judge_list_offsets });
    if (r == NULL)
        return false;
    for (int32_t i = 0; i < r->n_topics; i++) {
        for (int32_t k = 0; k < r->topics[i].n_partitions; k++) {
            const struct list_offsets_response_partitions *rp = &r->topics[i].partitions[k];
            struct part *p = part_find(parts, n, r->topics[i].name, rp->partition_index);
            if (p != NULL)
                list_offsets_take(p, timestamp_ms, rp);
        }
    }
    return true;
}

/* ---- KlogStat ---- */
static void klog_stat_request_fill(struct session *s, const struct part *parts, size_t n, int32_t leader,
                                   struct klog_stat_request *req)
{
    wire_defaults(&wire_klog_stat_request, req);
    req->topics = arena_array(&s->arena, n, sizeof *req->topics);
    struct klog_stat_request_topics *t = NULL;
    for (size_t i = 0; i < n; i++) {
        if (parts[i].meta->leader_id != leader)
            continue;
        if (t == NULL || !kstr_eq(t->name, parts[i].topic->name)) {
            t = &req->topics[req->n_topics++];
            t->name = parts[i].topic->name;
            t->partitions =
                arena_array(&s->arena, (size_t)parts[i].topic->n_partitions, sizeof *t->partitions);
        }
        struct klog_stat_request_partitions *p = &t->partitions[t->n_partitions++];
        p->index = parts[i].meta->partition_index;
        p->known_end_offset = -1;
    }
}

static bool leader_stat(struct session *s, struct part *parts, size_t n, int32_t leader)
{
    struct klog_stat_request req;

    klog_stat_request_fill(s, parts, n, leader, &req);
    const struct klog_stat_response *r = session_call(
        s,
        &(struct session_call){
            .target = TARGET_BROKER, .broker_id = leader, .request = &wire_klog_stat_request, .body = &req });
    if (r == NULL)
        return false;
    for (int32_t i = 0; i < r->n_topics; i++) {
        for (int32_t k = 0; k < r->topics[i].n_partitions; k++) {
            const struct klog_stat_response_partitions *rp = &r->topics[i].partitions[k];
            struct part *p = part_find(parts, n, r->topics[i].name, rp->index);
            if (p == NULL)
                continue;
            p->err = rp->error_code;
            if (rp->error_code != KERR_NONE)
                continue;
            p->start_offset = rp->start_offset;
            p->end_offset = rp->end_offset;
            p->size_bytes = rp->size_bytes;
        }
    }
    return true;
}

/* ---- each leader once ---- */
static bool leader_seen(const struct part *parts, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (parts[k].meta->leader_id == parts[i].meta->leader_id)
            return true;
    }
    return false;
}

static bool leader_ask_ends(struct session *s, struct part *parts, size_t n, int32_t leader)
{
    if (client_has_api(s->client, API_KLOG_STAT))
        return leader_stat(s, parts, n, leader);
    return leader_list_offsets(s, parts, n, leader, TIMESTAMP_EARLIEST) &&
           leader_list_offsets(s, parts, n, leader, TIMESTAMP_LATEST);
}

static void parts_mark_leaderless(struct part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (parts[i].meta->leader_id < 0)
            parts[i].err = KERR_LEADER_NOT_AVAILABLE;
    }
}

static bool parts_all_answered(const struct part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (parts[i].err != KERR_NONE)
            return false;
    }
    return true;
}

bool parts_ask_ends(struct session *s, struct part *parts, size_t n)
{
    bool ok = true;

    for (size_t i = 0; i < n; i++) {
        if (parts[i].meta->leader_id >= 0 && !leader_seen(parts, i))
            ok = leader_ask_ends(s, parts, n, parts[i].meta->leader_id) && ok;
    }
    parts_mark_leaderless(parts, n);
    return ok && parts_all_answered(parts, n);
}

bool parts_ask_time(struct session *s, struct part *parts, size_t n, int64_t timestamp_ms)
{
    bool ok = true;

    for (size_t i = 0; i < n; i++) {
        if (parts[i].meta->leader_id >= 0 && !leader_seen(parts, i))
            ok = leader_list_offsets(s, parts, n, parts[i].meta->leader_id, timestamp_ms) && ok;
    }
    parts_mark_leaderless(parts, n);
    return ok && parts_all_answered(parts, n);
}

bool pair_split(struct session *s, const char *text, char **ret_key, char **ret_value)
{
    const char *equals = strchr(text, '=');

    if (equals == NULL || equals == text)
        return false;
    *ret_key = arena_printf(&s->arena, "%.*s", (int)(equals - text), text);
    *ret_value = arena_strdup(&s->arena, equals + 1);
    return true;
}
