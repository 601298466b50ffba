/* SPDX-License-Identifier: Apache-2.0 */
/* Range and round robin as Kafka's assignors have them; see assign.h. */
#include "lib/client/assign.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/check.h"
#include "lib/wire/rd.h"
#include "lib/wire/wire.h"

/* Every client reads 0, and what later versions add is for assignors that we do not have. */
enum { CONSUMER_PROTOCOL_VERSION = 0 };

static const char *const assignor_names[ASSIGNORS] = {
    [ASSIGN_RANGE] = "range",
    [ASSIGN_ROUNDROBIN] = "roundrobin",
    [ASSIGN_ROUNDROBIN_KAFKAJS] = "RoundRobinAssigner",
};

const char *assignor_name(enum assignor as)
{
    KCHECK(as < ASSIGNORS);
    return assignor_names[as];
}

int assignor_of(struct kstr name)
{
    for (int i = 0; i < ASSIGNORS; i++) {
        if (kstr_eqz(name, assignor_names[i]))
            return i;
    }
    return -1;
}

/* ---- order ---- */
static int kstr_compare(struct kstr a, struct kstr b)
{
    size_t na = (size_t)MAX(a.n, 0), nb = (size_t)MAX(b.n, 0), n = MIN(na, nb);
    int d = n > 0 ? memcmp(a.p, b.p, n) : 0;
    return d != 0 ? d : na < nb ? -1 : na > nb;
}

/* Static members first: they keep their partitions through restarts, which change their ids. */
static int member_compare(const void *x, const void *y)
{
    const struct assign_member *a = *(const struct assign_member *const *)x;
    const struct assign_member *b = *(const struct assign_member *const *)y;
    bool as = !kstr_is_null(a->instance_id), bs = !kstr_is_null(b->instance_id);
    if (as != bs)
        return as ? -1 : 1;
    return as ? kstr_compare(a->instance_id, b->instance_id) : kstr_compare(a->id, b->id);
}

static int topic_compare(const void *x, const void *y)
{
    const struct assign_topic *a = x, *b = y;
    return kstr_compare(a->name, b->name);
}

static int name_compare(const void *x, const void *y)
{
    return kstr_compare(*(const struct kstr *)x, *(const struct kstr *)y);
}

/* ---- the plan ---- */
struct plan_member {
    struct assign_member *m;
    struct kstr *topics; /* sorted */
};

struct plan {
    struct arena *a;
    struct plan_member *members; /* in order */
    size_t n_members;
    const struct assign_topic *topics; /* in order */
    size_t n_topics;
    /* the partitions in order, and the index of the member that gets each */
    struct assign_part *parts;
    uint32_t *owners;
    size_t n_parts;
    size_t next; /* round robin: whose turn it is */
};

static void plan_members(struct plan *pl, struct assign_member *members, size_t n)
{
    struct assign_member **order = arena_array(pl->a, n, sizeof *order);
    for (size_t i = 0; i < n; i++)
        order[i] = &members[i];
    qsort(order, n, sizeof *order, member_compare);
    pl->members = arena_array(pl->a, n, sizeof *pl->members);
    pl->n_members = n;
    for (size_t i = 0; i < n; i++) {
        struct plan_member *pm = &pl->members[i];
        size_t n_topics = (size_t)order[i]->n_topics;
        pm->m = order[i];
        pm->m->n_parts = 0;
        pm->topics = arena_array(pl->a, n_topics, sizeof *pm->topics);
        if (n_topics > 0)
            memcpy(pm->topics, pm->m->topics, n_topics * sizeof *pm->topics);
        qsort(pm->topics, n_topics, sizeof *pm->topics, name_compare);
    }
}

static void plan_topics(struct plan *pl, const struct assign_topic *topics, size_t n)
{
    struct assign_topic *sorted = arena_array(pl->a, n, sizeof *sorted);
    size_t n_parts = 0;
    for (size_t i = 0; i < n; i++) {
        KCHECK(topics[i].n_partitions >= 0);
        sorted[i] = topics[i];
        n_parts += (size_t)topics[i].n_partitions;
    }
    qsort(sorted, n, sizeof *sorted, topic_compare);
    pl->topics = sorted;
    pl->n_topics = n;
    pl->parts = arena_array(pl->a, n_parts, sizeof *pl->parts);
    pl->owners = arena_array(pl->a, n_parts, sizeof *pl->owners);
}

static bool subscribes(const struct plan_member *pm, struct kstr topic)
{
    return bsearch(&topic, pm->topics, (size_t)pm->m->n_topics, sizeof topic, name_compare) != NULL;
}

static void plan_give(struct plan *pl, const struct assign_topic *t, int32_t partition, uint32_t member)
{
    pl->parts[pl->n_parts] = (struct assign_part){ t->name, partition };
    pl->owners[pl->n_parts++] = member;
    pl->members[member].m->n_parts++;
}

/* Each subscriber gets a run of a topic's partitions; the first ones get one more where it does not come
 * out even. */
static void plan_range(struct plan *pl, const struct assign_topic *t, const uint32_t *subscribers, size_t n)
{
    int32_t each = t->n_partitions / (int32_t)n, more = t->n_partitions % (int32_t)n, at = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t end = at + each + ((int32_t)i < more);
        for (; at < end; at++)
            plan_give(pl, t, at, subscribers[i]);
    }
    KCHECK(at == t->n_partitions);
}

/* One partition each in turn, over all topics; who does not subscribe to a topic is passed over. */
static void plan_roundrobin(struct plan *pl, const struct assign_topic *t)
{
    for (int32_t i = 0; i < t->n_partitions; i++) {
        while (!subscribes(&pl->members[pl->next], t->name))
            pl->next = (pl->next + 1) % pl->n_members;
        plan_give(pl, t, i, (uint32_t)pl->next);
        pl->next = (pl->next + 1) % pl->n_members;
    }
}

static void plan_hand_out(struct plan *pl)
{
    for (size_t i = 0; i < pl->n_members; i++) {
        struct assign_member *m = pl->members[i].m;
        m->parts = arena_array(pl->a, m->n_parts, sizeof *m->parts);
        m->n_parts = 0;
    }
    for (size_t i = 0; i < pl->n_parts; i++) {
        struct assign_member *m = pl->members[pl->owners[i]].m;
        m->parts[m->n_parts++] = pl->parts[i];
    }
}

void assign(enum assignor as, struct arena *a, struct assign_member *members, size_t n_members,
            const struct assign_topic *topics, size_t n_topics)
{
    struct plan pl = { .a = a };
    plan_members(&pl, members, n_members);
    plan_topics(&pl, topics, n_topics);
    uint32_t *subscribers = arena_array(a, n_members, sizeof *subscribers);
    for (size_t i = 0; i < n_topics; i++) {
        const struct assign_topic *t = &pl.topics[i];
        size_t n = 0;
        for (size_t k = 0; k < n_members; k++) {
            if (subscribes(&pl.members[k], t->name))
                subscribers[n++] = (uint32_t)k;
        }
        if (n > 0 && as == ASSIGN_RANGE)
            plan_range(&pl, t, subscribers, n);
        else if (n > 0)
            plan_roundrobin(&pl, t);
    }
    plan_hand_out(&pl);
}

/* ---- bytes ---- */
static void write_message(const struct wire_message *m, const void *body, struct bytebuf *ret)
{
    struct wire_out out = { 0 };
    put_be16(bytebuf_extend(ret, 2), CONSUMER_PROTOCOL_VERSION);
    int rc = wire_encode(m, CONSUMER_PROTOCOL_VERSION, body, &out, NULL);
    KCHECK(rc == 0 && out.n_gaps == 0);
    bytebuf_add(ret, out.b.p, out.b.n);
    wire_out_done(&out);
}

void assign_write_subscription(const struct kstr *topics, size_t n, struct bytebuf *ret)
{
    CLEANUP(arena_done) struct arena a;
    arena_init(&a);
    struct consumer_protocol_subscription body;
    wire_defaults(&wire_consumer_protocol_subscription, &body);
    body.topics = n > 0 ? arena_dup(&a, topics, n * sizeof *topics) : NULL;
    body.n_topics = (int32_t)n;
    write_message(&wire_consumer_protocol_subscription, &body, ret);
}

void assign_write_parts(const struct assign_part *parts, size_t n, struct bytebuf *ret)
{
    CLEANUP(arena_done) struct arena a;
    arena_init(&a);
    struct consumer_protocol_assignment body;
    wire_defaults(&wire_consumer_protocol_assignment, &body);
    body.assigned_partitions = arena_array(&a, n, sizeof *body.assigned_partitions);
    int32_t *indexes = arena_array(&a, n, sizeof *indexes);
    struct consumer_protocol_assignment_assigned_partitions *t = NULL;
    for (size_t i = 0; i < n; i++) {
        indexes[i] = parts[i].partition;
        if (t == NULL || !kstr_eq(t->topic, parts[i].topic)) {
            t = &body.assigned_partitions[body.n_assigned_partitions++];
            t->topic = parts[i].topic;
            t->partitions = &indexes[i];
        }
        t->n_partitions++;
    }
    write_message(&wire_consumer_protocol_assignment, &body, ret);
}

/* A count of things that take at least min_bytes each; what is claimed beyond the bytes there are is damage.
 */
static int32_t read_count(struct rd *r, size_t min_bytes)
{
    int32_t n = rd_i32(r);
    if (n < 0 || (size_t)n > rd_left(r) / min_bytes) {
        rd_fail(r);
        return 0;
    }
    return n;
}

static struct kstr read_string(struct rd *r)
{
    int16_t n = rd_i16(r);
    if (n < 0) {
        rd_fail(r);
        return kstr_of("");
    }
    const uint8_t *p = rd_take(r, (size_t)n);
    return p != NULL ? kstr_bytes(p, (size_t)n) : kstr_of("");
}

static struct rd read_versioned(struct kstr bytes)
{
    struct rd r = rd_of(slice_of(bytes.p, bytes.n > 0 ? (size_t)bytes.n : 0));
    if (rd_i16(&r) < 0)
        rd_fail(&r);
    return r;
}

int assign_read_subscription(struct kstr bytes, struct arena *a, struct kstr **ret, int32_t *ret_n)
{
    struct rd r = read_versioned(bytes);
    int32_t n = read_count(&r, 2);
    struct kstr *topics = arena_array(a, (size_t)n, sizeof *topics);
    for (int32_t i = 0; i < n; i++)
        topics[i] = read_string(&r);
    if (r.bad)
        return -EBADMSG;
    *ret = topics;
    *ret_n = n;
    return 0;
}

int assign_read_parts(struct kstr bytes, struct arena *a, struct assign_part **ret, size_t *ret_n)
{
    struct rd r = read_versioned(bytes);
    /* each partition takes four bytes */
    struct assign_part *parts = arena_array(a, rd_left(&r) / 4, sizeof *parts);
    size_t n = 0;
    for (int32_t topics = read_count(&r, 6); topics > 0; topics--) {
        struct kstr topic = read_string(&r);
        for (int32_t k = read_count(&r, 4); k > 0; k--)
            parts[n++] = (struct assign_part){ topic, rd_i32(&r) };
    }
    if (r.bad)
        return -EBADMSG;
    *ret = parts;
    *ret_n = n;
    return 0;
}
