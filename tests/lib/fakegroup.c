/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A make-believe coordinator of one group with one real member; see fakebroker.h. It checks generation and
 * member id as a real one does, so a member that gets them wrong is told so. Bytes of subscriptions and
 * assignments are read and written by hand here, apart from lib/client.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "fakebroker_int.h"
#include "lib/base/check.h"
#include "lib/base/varint.h"

/* ---- "t/0,t/1" and the bytes for it ---- */
static void text_add(char *text, size_t size, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void text_add(char *text, size_t size, const char *fmt, ...)
{
    size_t n = strlen(text);
    va_list ap;
    if (n > 0)
        n += (size_t)snprintf(text + n, size - n, ",");
    va_start(ap, fmt);
    vsnprintf(text + n, size - n, fmt, ap);
    va_end(ap);
}

static void put_string(struct bytebuf *b, const char *s, size_t n)
{
    put_be16(bytebuf_extend(b, 2), (uint16_t)n);
    bytebuf_add(b, s, n);
}

/* One entry a partition, as nobody forbids; what newer versions add stands behind. */
static void assignment_write(const char *text, struct bytebuf *b)
{
    uint32_t n = 0;
    put_be16(bytebuf_extend(b, 2), 3);
    size_t count_at = b->n;
    bytebuf_extend(b, 4);
    for (const char *p = text; *p != '\0'; n++) {
        size_t name = strcspn(p, "/"), all = strcspn(p, ",");
        put_string(b, p, name);
        put_be32(bytebuf_extend(b, 4), 1);
        put_be32(bytebuf_extend(b, 4), (uint32_t)atoi(p + name + 1));
        p += all + (p[all] == ',');
    }
    put_be32(b->p + count_at, n);
    bytebuf_add(b,
                "\xff\xff\xff\xff"
                "later",
                9);
}

static void assignment_read(struct kstr bytes, char *text, size_t size)
{
    const uint8_t *p = (const uint8_t *)bytes.p + 2;
    text[0] = '\0';
    for (uint32_t n = (p += 4, get_be32(p - 4)); n > 0; n--) {
        size_t name_n = get_be16(p);
        const char *name = (const char *)p + 2;
        p += 2 + name_n;
        for (uint32_t k = (p += 4, get_be32(p - 4)); k > 0; k--, p += 4)
            text_add(text, size, "%.*s/%u", (int)name_n, name, get_be32(p));
    }
    KCHECK(get_be32(p) == UINT32_MAX && p + 4 == (const uint8_t *)bytes.p + bytes.n);
}

static struct kstr subscription_of(struct arena *a, const char *topic)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    put_be16(bytebuf_extend(&b, 2), 1);
    put_be32(bytebuf_extend(&b, 4), 1);
    put_string(&b, topic, strlen(topic));
    bytebuf_add(&b, "\xff\xff\xff\xff\0\0\0\0", 8);
    return kstr_bytes(arena_dup(a, b.p, b.n), b.n);
}

static void subscription_read(struct kstr bytes, char *text, size_t size)
{
    const uint8_t *p = (const uint8_t *)bytes.p + 6;
    text[0] = '\0';
    for (uint32_t n = get_be32(p - 4); n > 0; n--) {
        text_add(text, size, "%.*s", (int)get_be16(p), p + 2);
        p += 2 + get_be16(p);
    }
}

/* ---- membership ---- */
static struct fake_group *group_of(struct fake_request *rq)
{
    return &rq->b->cluster->group;
}

static enum kerr check_member(const struct fake_request *rq, struct kstr id, int32_t generation)
{
    const struct fake_group *g = &rq->b->cluster->group;
    if (rq->err != KERR_NONE)
        return rq->err;
    if (!g->is_known || !kstr_eqz(id, g->id))
        return KERR_UNKNOWN_MEMBER_ID;
    return generation == g->generation ? KERR_NONE : KERR_ILLEGAL_GENERATION;
}

static void note_join(struct fake_group *g, const struct join_group_request *body)
{
    g->session_timeout_ms = body->session_timeout_ms;
    g->rebalance_timeout_ms = body->rebalance_timeout_ms;
    snprintf(g->instance_id, sizeof g->instance_id, "%.*s", KSTR_FMT(body->group_instance_id));
    g->offered[0] = '\0';
    for (int32_t i = 0; i < body->n_protocols; i++)
        text_add(g->offered, sizeof g->offered, "%.*s", KSTR_FMT(body->protocols[i].name));
    subscription_read(body->protocols[0].metadata, g->subscribed, sizeof g->subscribed);
}

static enum kerr join_check(struct fake_request *rq)
{
    struct fake_group *g = group_of(rq);
    const struct join_group_request *body = rq->body;
    if (rq->err != KERR_NONE)
        return rq->err;
    if (body->member_id.n > 0)
        return kstr_eqz(body->member_id, g->id) ? KERR_NONE : KERR_UNKNOWN_MEMBER_ID;
    snprintf(g->id, sizeof g->id, "test-%d", ++g->ids);
    return g->gives_ids && rq->h.api_version >= 4 ? KERR_MEMBER_ID_REQUIRED : KERR_NONE;
}

static void join_tell_members(struct fake_request *rq, struct join_group_response *r)
{
    struct fake_group *g = group_of(rq);
    const struct join_group_request *body = rq->body;
    r->n_members = 1 + g->n_peers;
    r->members = WIRE_NEW(&rq->a, join_group_response_members, r->n_members);
    r->members[0].member_id = kstr_of(g->id);
    r->members[0].group_instance_id = body->group_instance_id;
    r->members[0].metadata = body->protocols[0].metadata;
    for (int i = 0; i < g->n_peers; i++) {
        r->members[1 + i].member_id = kstr_of(g->peers[i].id);
        r->members[1 + i].metadata =
            g->peers[i].topic != NULL ? subscription_of(&rq->a, g->peers[i].topic) : kstr_of("?");
    }
}

void fake_join_group(struct fake_request *rq)
{
    struct fake_group *g = group_of(rq);
    const struct join_group_request *body = rq->body;
    struct join_group_response r;
    note_join(g, body);
    wire_defaults(&wire_join_group_response, &r);
    enum kerr err = join_check(rq);
    r.error_code = (int16_t)err;
    r.protocol_name = r.leader = kstr_of("");
    r.member_id = kstr_of(err == KERR_NONE || err == KERR_MEMBER_ID_REQUIRED ? g->id : "");
    if (err == KERR_NONE) {
        g->is_known = true;
        g->rebalances = false;
        r.generation_id = ++g->generation;
        r.protocol_type = body->protocol_type;
        r.protocol_name = g->protocol != NULL ? kstr_of(g->protocol) : body->protocols[0].name;
        r.leader = kstr_of(g->leader != NULL ? g->leader : g->id);
        if (rq->h.api_version >= 9)
            r.skip_assignment = g->skip_assignment;
        if (g->leader == NULL)
            join_tell_members(rq, &r);
    }
    fake_answer(rq, &r);
}

static void sync_take(struct fake_group *g, const struct sync_group_request_assignments *as)
{
    if (kstr_eqz(as->member_id, g->id))
        assignment_read(as->assignment, g->got, sizeof g->got);
    for (int i = 0; i < g->n_peers; i++) {
        if (kstr_eqz(as->member_id, g->peers[i].id))
            assignment_read(as->assignment, g->peers[i].got, sizeof g->peers[i].got);
    }
}

void fake_sync_group(struct fake_request *rq)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct fake_group *g = group_of(rq);
    const struct sync_group_request *body = rq->body;
    struct sync_group_response r;
    wire_defaults(&wire_sync_group_response, &r);
    r.error_code = (int16_t)check_member(rq, body->member_id, body->generation_id);
    r.assignment = kstr_of("");
    if (r.error_code == KERR_NONE) {
        for (int32_t i = 0; i < body->n_assignments; i++)
            sync_take(g, &body->assignments[i]);
        const char *parts = g->assignment != NULL ? g->assignment : g->got;
        if (parts[0] != '\0')
            assignment_write(parts, &b);
        r.assignment = kstr_bytes(b.p, b.n);
    }
    fake_answer(rq, &r);
}

void fake_heartbeat(struct fake_request *rq)
{
    const struct heartbeat_request *body = rq->body;
    struct heartbeat_response r;
    wire_defaults(&wire_heartbeat_response, &r);
    enum kerr err = check_member(rq, body->member_id, body->generation_id);
    if (err == KERR_NONE && group_of(rq)->rebalances)
        err = KERR_REBALANCE_IN_PROGRESS;
    r.error_code = (int16_t)err;
    fake_answer(rq, &r);
}

void fake_leave_group(struct fake_request *rq)
{
    struct fake_group *g = group_of(rq);
    const struct leave_group_request *body = rq->body;
    struct leave_group_response r;
    wire_defaults(&wire_leave_group_response, &r);
    KCHECK(rq->h.api_version <= 2);
    r.error_code = (int16_t)rq->err;
    if (rq->err == KERR_NONE && !kstr_eqz(body->member_id, g->id))
        r.error_code = KERR_UNKNOWN_MEMBER_ID;
    if (r.error_code == KERR_NONE)
        g->n_left++;
    fake_answer(rq, &r);
}

/* ---- positions ---- */
static struct fake_position *position_at(struct fake_group *g, struct kstr topic, int32_t partition)
{
    for (int i = 0; i < g->n_positions; i++) {
        if (kstr_eqz(topic, g->positions[i].topic) && g->positions[i].partition == partition)
            return &g->positions[i];
    }
    return NULL;
}

static void position_store(struct fake_group *g, struct kstr topic,
                           const struct offset_commit_request_partitions *from)
{
    struct fake_position *p = position_at(g, topic, from->partition_index);
    if (p == NULL) {
        KCHECK(g->n_positions < FAKE_POSITIONS);
        p = &g->positions[g->n_positions++];
    }
    snprintf(p->topic, sizeof p->topic, "%.*s", KSTR_FMT(topic));
    p->partition = from->partition_index;
    p->offset = from->committed_offset;
    p->leader_epoch = from->committed_leader_epoch;
    snprintf(p->metadata, sizeof p->metadata, "%.*s", KSTR_FMT(from->committed_metadata));
}

void fake_offset_commit(struct fake_request *rq)
{
    struct fake_group *g = group_of(rq);
    const struct offset_commit_request *body = rq->body;
    struct offset_commit_response r;
    wire_defaults(&wire_offset_commit_response, &r);
    bool member = body->generation_id_or_member_epoch >= 0;
    enum kerr err = member ? check_member(rq, body->member_id, body->generation_id_or_member_epoch) : rq->err;
    r.n_topics = body->n_topics;
    r.topics = WIRE_NEW(&rq->a, offset_commit_response_topics, r.n_topics);
    for (int32_t i = 0; i < r.n_topics; i++) {
        const struct offset_commit_request_topics *t = &body->topics[i];
        r.topics[i].name = t->name;
        r.topics[i].n_partitions = t->n_partitions;
        r.topics[i].partitions = WIRE_NEW(&rq->a, offset_commit_response_partitions, t->n_partitions);
        for (int32_t k = 0; k < t->n_partitions; k++) {
            enum kerr own = t->partitions[k].committed_metadata.n > 16 ? KERR_OFFSET_METADATA_TOO_LARGE : err;
            r.topics[i].partitions[k].partition_index = t->partitions[k].partition_index;
            r.topics[i].partitions[k].error_code = (int16_t)own;
            if (own == KERR_NONE)
                position_store(g, t->name, &t->partitions[k]);
        }
    }
    fake_answer(rq, &r);
}

static void fetch_answer(struct fake_position *p, int32_t partition,
                         struct offset_fetch_response_partitions *ret)
{
    ret->partition_index = partition;
    ret->committed_offset = p != NULL && p->err == KERR_NONE ? p->offset : -1;
    ret->committed_leader_epoch = p != NULL && p->err == KERR_NONE ? p->leader_epoch : -1;
    ret->metadata = kstr_of(p != NULL ? p->metadata : "");
    ret->error_code = p != NULL ? (int16_t)p->err : 0;
    if (p != NULL && kerr_retriable(p->err))
        p->err = KERR_NONE; /* it passes */
}

static void fetch_all(struct fake_request *rq, struct offset_fetch_response *r)
{
    struct fake_group *g = group_of(rq);
    r->n_topics = g->n_positions;
    r->topics = WIRE_NEW(&rq->a, offset_fetch_response_topics, r->n_topics);
    for (int i = 0; i < g->n_positions; i++) {
        r->topics[i].name = kstr_of(g->positions[i].topic);
        r->topics[i].n_partitions = 1;
        r->topics[i].partitions = WIRE_NEW(&rq->a, offset_fetch_response_partitions, 1);
        fetch_answer(&g->positions[i], g->positions[i].partition, &r->topics[i].partitions[0]);
    }
}

static void fetch_wanted(struct fake_request *rq, const struct offset_fetch_request *body,
                         struct offset_fetch_response *r)
{
    r->n_topics = body->n_topics;
    r->topics = WIRE_NEW(&rq->a, offset_fetch_response_topics, r->n_topics);
    for (int32_t i = 0; i < r->n_topics; i++) {
        const struct offset_fetch_request_topics *t = &body->topics[i];
        r->topics[i].name = t->name;
        r->topics[i].n_partitions = t->n_partition_indexes;
        r->topics[i].partitions = WIRE_NEW(&rq->a, offset_fetch_response_partitions, t->n_partition_indexes);
        for (int32_t k = 0; k < t->n_partition_indexes; k++)
            fetch_answer(position_at(group_of(rq), t->name, t->partition_indexes[k]), t->partition_indexes[k],
                         &r->topics[i].partitions[k]);
    }
}

void fake_offset_fetch(struct fake_request *rq)
{
    const struct offset_fetch_request *body = rq->body;
    struct offset_fetch_response r;
    wire_defaults(&wire_offset_fetch_response, &r);
    r.error_code = (int16_t)rq->err;
    if (rq->err == KERR_NONE && body->n_topics < 0)
        fetch_all(rq, &r);
    else if (rq->err == KERR_NONE)
        fetch_wanted(rq, body, &r);
    fake_answer(rq, &r);
}
