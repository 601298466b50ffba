/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OffsetCommit: positions into the log, then into memory, then the answer. All positions of a request are one
 * batch, so they are kept together or not at all; how many that may be is limited, as in Kafka by the size of a batch.
 */
#include "daemon/api/api.h"
#include "daemon/api/group_api.h"
#include "daemon/api/services.h"
#include "daemon/group/group_log.h"
#include "lib/base/check.h"
#include "lib/base/utf16.h"
#include "lib/base/world.h"

enum { POSITIONS_MAX = 20000 }; /* of one request: as many as Kafka's batch of 1 MiB has room for */

struct commit { /* in the waiter's arena */
    struct group_waiter *w;
    struct offset_commit_response rsp;
    struct committed_offset *offsets; /* those that are worth a record */
    int16_t **codes;                  /* of each: where its error code goes */
    int32_t n;
};

static void fail_all(struct commit *c, enum kerr err)
{
    for (int32_t i = 0; i < c->n; i++)
        *c->codes[i] = (int16_t)err;
}

/* ---- unpacking ---- */

static size_t count_partitions(const struct offset_commit_request *q)
{
    size_t n = 0;

    for (int32_t i = 0; i < q->n_topics; i++)
        n += (size_t)q->topics[i].n_partitions;
    return n;
}

static void unpack_partition(struct commit *c, const struct offset_commit_request *q, const char *topic,
                             const struct uuid *topic_id, const struct offset_commit_request_partitions *p,
                             int64_t now_ms, int16_t *code)
{
    bool own = c->w->api_version <= 4 && q->retention_time_ms >= 0;
    struct kstr note = arena_kstr(&c->w->arena, p->committed_metadata);

    c->codes[c->n] = code;
    c->offsets[c->n++] = (struct committed_offset){
        .topic = (char *)topic,
        .topic_id = *topic_id,
        .partition = p->partition_index,
        .offset = p->committed_offset,
        .leader_epoch = p->committed_leader_epoch,
        .metadata = (char *)note.p,
        .metadata_bytes = MAX(note.n, 0),
        .commit_ms = now_ms,
        .expire_ms = own && q->retention_time_ms < INT64_MAX - now_ms ? now_ms + q->retention_time_ms : -1,
    };
}

static void unpack_topic(struct commit *c, const struct offset_commit_request *q,
                         const struct offset_commit_request_topics *t, const struct cluster_image *img,
                         struct offset_commit_response_topics *out)
{
    enum kerr err = KERR_NONE;
    const struct cluster_topic *found = group_topic(img, c->w->api_version >= 10, t->name, &t->topic_id, &err);
    const char *name = found != NULL ? arena_strdup(&c->w->arena, found->name) : group_text(&c->w->arena, t->name);
    int64_t now_ms = world_wall_ms(loop_world(c->w->loop));

    out->name = kstr_of(name);
    out->topic_id = t->topic_id;
    out->n_partitions = t->n_partitions;
    out->partitions = arena_array(&c->w->arena, (size_t)t->n_partitions, sizeof *out->partitions);
    for (int32_t i = 0; i < t->n_partitions; i++) {
        const struct offset_commit_request_partitions *p = &t->partitions[i];
        out->partitions[i].partition_index = p->partition_index;
        if (found == NULL)
            out->partitions[i].error_code = (int16_t)err;
        else if (p->partition_index < 0 || p->partition_index >= found->n_partitions)
            out->partitions[i].error_code = KERR_UNKNOWN_TOPIC_OR_PARTITION;
        else
            unpack_partition(c, q, name, &found->id, p, now_ms, &out->partitions[i].error_code);
    }
}

static struct commit *unpack(struct request *r, const struct offset_commit_request *q)
{
    struct group_waiter *w = group_waiter_new(r);
    struct commit *c = arena_alloc(&w->arena, sizeof *c);
    struct cluster_image *img = cluster_image_get(r->services->cluster);
    size_t n = count_partitions(q);

    c->w = w;
    c->offsets = arena_array(&w->arena, n, sizeof *c->offsets);
    c->codes = arena_array(&w->arena, n, sizeof *c->codes);
    wire_defaults(&wire_offset_commit_response, &c->rsp);
    c->rsp.n_topics = q->n_topics;
    c->rsp.topics = arena_array(&w->arena, (size_t)q->n_topics, sizeof *c->rsp.topics);
    for (int32_t i = 0; i < q->n_topics; i++)
        unpack_topic(c, q, &q->topics[i], img, &c->rsp.topics[i]);
    cluster_image_put(img);
    return c;
}

/* ---- writing ---- */

/* Under the shard's lock: a topic that goes from now on finds these positions, and takes them with it
 * (coordinator_topic_deleted); one that went before does not get them any more, nor does one made anew. */
static void drop_gone_topics(struct commit *c, struct cluster *cluster)
{
    struct cluster_image *img = cluster_image_get(cluster);
    int32_t kept = 0;

    for (int32_t i = 0; i < c->n; i++) {
        if (cluster_image_topic_by_id(img, &c->offsets[i].topic_id) == NULL) {
            *c->codes[i] = c->w->api_version >= 10 ? KERR_UNKNOWN_TOPIC_ID : KERR_UNKNOWN_TOPIC_OR_PARTITION;
            continue;
        }
        c->offsets[kept] = c->offsets[i];
        c->codes[kept++] = c->codes[i];
    }
    c->n = kept;
    cluster_image_put(img);
}

/* offset.metadata.max.bytes counts characters as Java does, whatever its name says. */
static void drop_long_notes(struct commit *c, int32_t max)
{
    int32_t kept = 0;

    for (int32_t i = 0; i < c->n; i++) {
        if (utf16_length(kstr_bytes(c->offsets[i].metadata, (size_t)c->offsets[i].metadata_bytes)) > max) {
            *c->codes[i] = KERR_OFFSET_METADATA_TOO_LARGE;
            continue;
        }
        c->offsets[kept] = c->offsets[i];
        c->codes[kept++] = c->codes[i];
    }
    c->n = kept;
}

static void on_written(void *arg, struct group_entry *e, enum kerr err, int64_t base_offset)
{
    struct commit *c = arg;

    for (int32_t i = 0; err == KERR_NONE && i < c->n; i++) {
        c->offsets[i].record_offset = base_offset + i;
        committed_put(&e->offsets, &c->offsets[i]);
    }
    fail_all(c, err);
    group_waiter_answer(c->w);
}

static void write_all(struct commit *c, struct group_entry *e)
{
    struct batch_builder b;

    batch_builder_init(&b);
    for (int32_t i = 0; i < c->n; i++)
        group_log_add_offset(&b, e->group->id, &c->offsets[i], c->offsets[i].commit_ms);
    group_write(e, &b, on_written, c);
    batch_builder_done(&b);
}

static enum kerr may_commit(struct request *r, const struct offset_commit_request *q, struct group_entry *e)
{
    /* A group that is not there takes positions from who has no part in its membership. */
    if (e == NULL)
        return r->api_version >= 9 ? KERR_GROUP_ID_NOT_FOUND : KERR_ILLEGAL_GENERATION;
    return group_may_commit(e->group, group_text(&r->arena, q->member_id),
                            group_text(&r->arena, q->group_instance_id), q->generation_id_or_member_epoch,
                            world_mono_ms(r->services->world));
}

/* True: it is on its way, and will be answered. */
static bool commit(struct request *r, const struct offset_commit_request *q, struct commit *c)
{
    struct group_lease l;

    enum kerr err =
        coordinator_enter(r->services->coordinator, q->group_id, q->generation_id_or_member_epoch < 0, &l);
    if (err != KERR_NONE) {
        fail_all(c, err);
        return false;
    }
    err = may_commit(r, q, l.e);
    if (err != KERR_NONE) {
        fail_all(c, err);
    } else {
        drop_gone_topics(c, r->services->cluster);
        drop_long_notes(c, r->services->config->offset_metadata_max_bytes);
        if (c->n > 0)
            write_all(c, l.e);
    }
    bool writing = err == KERR_NONE && c->n > 0;
    coordinator_leave(&l);
    return writing;
}

/* ---- too many ---- */

static bool names_too_many(const struct offset_commit_request *q)
{
    return (size_t)q->n_topics + count_partitions(q) > POSITIONS_MAX;
}

/* On a worker: it names as many as were asked. */
static const void *answer_too_many(struct request *r, const char **ret_why)
{
    const struct offset_commit_request *q = r->body;
    struct offset_commit_response *rsp = arena_alloc(&r->arena, sizeof *rsp);
    (void)ret_why;

    wire_defaults(&wire_offset_commit_response, rsp);
    rsp->n_topics = q->n_topics;
    rsp->topics = arena_array(&r->arena, (size_t)q->n_topics, sizeof *rsp->topics);
    for (int32_t i = 0; i < q->n_topics; i++) {
        const struct offset_commit_request_topics *t = &q->topics[i];
        struct offset_commit_response_topics *out = &rsp->topics[i];
        *out = (struct offset_commit_response_topics){ .name = t->name, .topic_id = t->topic_id };
        out->n_partitions = t->n_partitions;
        out->partitions = arena_array(&r->arena, (size_t)t->n_partitions, sizeof *out->partitions);
        for (int32_t k = 0; k < t->n_partitions; k++)
            out->partitions[k] = (struct offset_commit_response_partitions){
                t->partitions[k].partition_index, KERR_INVALID_COMMIT_OFFSET_SIZE
            };
    }
    return rsp;
}

void handle_offset_commit(struct request *r)
{
    const struct offset_commit_request *q = r->body;

    if (names_too_many(q)) {
        request_answer_on_worker(r, 0, answer_too_many);
        return;
    }
    struct commit *c = unpack(r, q);

    c->w->response = &c->rsp;
    if (c->n == 0 || !commit(r, q, c))
        group_waiter_answer(c->w);
}
