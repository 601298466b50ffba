/* SPDX-License-Identifier: Apache-2.0 */
/* The shadow of topics, logs and groups, and what contradicts it; see truth.h. */
#include "tests/sim/truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/base/slice.h"

void truth_init(struct truth *t, struct sim *s)
{
    memset(t, 0, sizeof *t);
    t->sim = s;
    for (int g = 0; g < TRUTH_GROUPS; g++) {
        snprintf(t->groups[g].name, sizeof t->groups[g].name, "g%d", g);
        memset(t->groups[g].acked, 0xff, sizeof t->groups[g].acked);
        memset(t->groups[g].asked, 0xff, sizeof t->groups[g].asked);
        t->groups[g].generation = -1;
    }
}

void truth_done(struct truth *t)
{
    for (int i = 0; i < t->n_topics; i++)
        for (int p = 0; p < TRUTH_PARTITIONS; p++)
            free(t->topics[i].parts[p].at);
    for (int i = 0; i < TRUTH_CLIENTS; i++)
        free(t->clients[i].batches);
}

/* ---- topics ---- */
int truth_topic_by_id(const struct truth *t, const struct uuid *id)
{
    for (int i = 0; i < t->n_topics; i++)
        if (uuid_eq(&t->topics[i].id, id))
            return i;
    return -1;
}

int truth_topic_live(const struct truth *t, const char *name)
{
    for (int i = t->n_topics - 1; i >= 0; i--)
        if (!t->topics[i].is_deleted && strcmp(t->topics[i].name, name) == 0)
            return i;
    return -1;
}

static struct truth_name *name_of(struct truth *t, const char *name)
{
    for (int i = 0; i < t->n_names; i++)
        if (strcmp(t->names[i].name, name) == 0)
            return &t->names[i];
    KCHECK(t->n_names < TRUTH_NAMES);
    struct truth_name *n = &t->names[t->n_names++];
    snprintf(n->name, sizeof n->name, "%s", name);
    return n;
}

void truth_topic_asked(struct truth *t, const char *name, bool compacts, bool retains, bool is_lazy)
{
    struct truth_name *n = name_of(t, name);
    n->may_compact |= compacts;
    n->may_retain |= retains;
    n->may_be_lazy |= is_lazy;
}

static int topic_add(struct truth *t, const char *name, const struct uuid *id)
{
    if (t->n_topics == TRUTH_TOPICS)
        return -1;
    struct truth_topic *topic = &t->topics[t->n_topics];
    topic->id = *id;
    snprintf(topic->name, sizeof topic->name, "%s", name);
    topic->internal = name[0] == '_';
    topic->compacts = name_of(t, name)->may_compact;
    topic->retains = name_of(t, name)->may_retain;
    topic->is_lazy = name_of(t, name)->may_be_lazy;
    return t->n_topics++;
}

void truth_topic_grown(struct truth *t, int i, int n_partitions)
{
    struct truth_topic *topic = &t->topics[i];
    if (n_partitions <= topic->n_partitions)
        return;
    topic->n_partitions = MIN(n_partitions, TRUTH_PARTITIONS);
    topic->grown_ns = sim_now(t->sim);
}

int truth_topic_shown(struct truth *t, const char *name, const struct uuid *id, int n_partitions, int64_t asked_ns)
{
    int i = truth_topic_by_id(t, id);
    if (i < 0) {
        for (int k = 0; k < t->n_topics; k++)
            if (strcmp(t->topics[k].name, name) == 0 && !t->topics[k].delete_asked)
                sim_fail(t->sim, "T1", "topic %s has another id, and nobody has asked for its deletion", name);
        i = topic_add(t, name, id);
        if (i < 0)
            return -1;
    }
    struct truth_topic *topic = &t->topics[i];
    if (strcmp(topic->name, name) != 0)
        sim_fail(t->sim, "T1", "topic %s is now called %s", topic->name, name);
    if (topic->is_deleted)
        sim_fail(t->sim, "T1", "topic %s was deleted and is there again", name);
    if (topic->is_known && n_partitions < topic->n_partitions && asked_ns > topic->grown_ns)
        sim_fail(t->sim, "T1", "topic %s has %d partitions; it had %d", name, n_partitions, topic->n_partitions);
    if (!topic->is_known)
        topic->known_ns = sim_now(t->sim);
    topic->is_known = true;
    truth_topic_grown(t, i, n_partitions);
    return i;
}

void truth_topic_missing(struct truth *t, int i, int64_t asked_ns)
{
    struct truth_topic *topic = &t->topics[i];
    (void)asked_ns;
    if (!topic->delete_asked)
        sim_fail(t->sim, "T1", "topic %s is gone, and nobody has asked for its deletion", topic->name);
}

void truth_topic_deleted(struct truth *t, int i)
{
    t->topics[i].is_deleted = true;
    t->topics[i].deleted_ns = sim_now(t->sim);
    sim_note(t->sim, "topic deleted", i, 0, 0);
}

/* ---- batches ---- */
static struct truth_partition *part_of(struct truth *t, int topic, int partition)
{
    KCHECK(topic >= 0 && topic < t->n_topics && partition >= 0 && partition < TRUTH_PARTITIONS);
    return &t->topics[topic].parts[partition];
}

struct truth_batch *truth_new_batch(struct truth *t, int client, int topic, int partition, const struct sim_batch_spec *spec,
                                    int16_t acks)
{
    struct truth_client *c = &t->clients[client];
    if (c->n == c->cap) {
        c->cap = MAX(64, 2 * c->cap);
        c->batches = xreallocarray(c->batches, (size_t)c->cap, sizeof *c->batches);
    }
    struct truth_batch *b = &c->batches[c->n];
    *b = (struct truth_batch){ .topic = topic,
                               .partition = partition,
                               .spec = *spec,
                               .acks = acks,
                               .offset = -1,
                               .sent_ns = sim_now(t->sim),
                               .after = part_of(t, topic, partition)->committed - 1 };
    KCHECK(spec->client == client && spec->batch == c->n);
    c->n++;
    t->n_sent += spec->count;
    return b;
}

struct truth_batch *truth_batch(struct truth *t, int client, int32_t batch)
{
    if (client < 0 || client >= TRUTH_CLIENTS || batch < 0 || batch >= t->clients[client].n)
        return NULL;
    return &t->clients[client].batches[batch];
}

static const char *where(const struct truth *t, const struct truth_batch *b)
{
    static char text[96];
    snprintf(text, sizeof text, "batch %d.%d (%s-%d)", b->spec.client, b->spec.batch, t->topics[b->topic].name, b->partition);
    return text;
}

static void part_reach(struct truth_partition *p, int64_t end)
{
    if (end > p->cap) {
        p->cap = MAX(MAX(256, 2 * p->cap), end);
        p->at = xreallocarray(p->at, (size_t)p->cap, sizeof *p->at);
    }
    for (; p->n < end; p->n++)
        p->at[p->n] = (struct truth_record){ .client = -1 };
}

static bool is_rotten(const struct truth_partition *p, int64_t offset)
{
    return p->rotten_from <= offset && offset < p->rotten_to;
}

/* The batch stands there, committed: does that fit with all that is known? */
static void batch_at(struct truth *t, struct truth_batch *b, int64_t base)
{
    struct truth_partition *p = part_of(t, b->topic, b->partition);
    /* Of a producer whose batches were all deleted, or of a batch that has rotted, a start may know nothing. */
    if (b->offset >= 0 && b->offset != base && b->offset >= p->start_asked && !is_rotten(p, b->offset))
        sim_fail(t->sim, "C2", "%s stands at %lld and at %lld", where(t, b), (long long)b->offset, (long long)base);
    if (b->fate == FATE_REFUSED)
        sim_fail(t->sim, "C3", "%s was refused and stands at %lld", where(t, b), (long long)base);
    if (base <= b->after)
        sim_fail(t->sim, "C8", "%s stands at %lld, but when it was sent all up to %lld was there", where(t, b), (long long)base,
                 (long long)b->after);
    if (b->offset == base)
        return;
    b->offset = base;
    part_reach(p, base + b->spec.count);
    for (int32_t i = 0; i < b->spec.count; i++) {
        struct truth_record *r = &p->at[base + i];
        if (r->client >= 0 && (r->client != b->spec.client || r->batch != b->spec.batch || r->index != i))
            sim_fail(t->sim, "C4", "%s-%d offset %lld is %d.%d.%d and %d.%d.%d", t->topics[b->topic].name, b->partition,
                     (long long)base + i, r->client, r->batch, r->index, b->spec.client, b->spec.batch, i);
        *r = (struct truth_record){ b->spec.client, b->spec.batch, i, sim_batch_key(&b->spec, i), sim_now(t->sim) };
    }
    p->committed = MAX(p->committed, base + b->spec.count);
}

/* C5, C9: the batches of one producer in one partition stand in the order of their epochs and sequences. */
static void check_order(struct truth *t, const struct truth_batch *b)
{
    const struct truth_client *c = &t->clients[b->spec.client];
    /* A broker that has forgotten a producer takes whatever it sends first, and lib/client sends again in no order. */
    if (b->is_loose && (t->topics[b->topic].is_lazy || t->topics[b->topic].retains))
        return;
    for (int32_t i = b->spec.batch - 1; i >= 0 && i > b->spec.batch - 200; i--) {
        const struct truth_batch *before = &c->batches[i];
        if (before->topic != b->topic || before->partition != b->partition || before->spec.producer_id != b->spec.producer_id ||
            b->spec.producer_id < 0)
            continue;
        if (before->spec.producer_epoch > b->spec.producer_epoch && before->offset >= 0 && before->offset < b->offset)
            sim_fail(t->sim, "C9", "%s, of epoch %d, stands at %lld, behind one of epoch %d at %lld", where(t, b),
                     b->spec.producer_epoch, (long long)b->offset, before->spec.producer_epoch, (long long)before->offset);
        if (before->spec.producer_epoch != b->spec.producer_epoch)
            continue;
        if (before->offset >= 0 && before->offset >= b->offset)
            sim_fail(t->sim, "C5", "%s stands at %lld, and the one before it, %d, at %lld", where(t, b), (long long)b->offset,
                     before->spec.batch, (long long)before->offset);
        if (before->offset >= 0)
            return;
    }
}

void truth_acked(struct truth *t, struct truth_batch *b, int64_t base)
{
    if (b->fate == FATE_ACKED && b->offset == base)
        return;
    batch_at(t, b, base);
    check_order(t, b);
    b->fate = FATE_ACKED;
    b->acked_ns = sim_now(t->sim);
    t->n_acked += b->spec.count;
    part_of(t, b->topic, b->partition)->n_acked += b->spec.count;
}

void truth_refused(struct truth *t, struct truth_batch *b)
{
    if (b->offset >= 0)
        sim_fail(t->sim, "C3", "%s is refused, and stands at %lld", where(t, b), (long long)b->offset);
    b->fate = FATE_REFUSED;
}

void truth_unknown(struct truth *t, struct truth_batch *b)
{
    (void)t;
    if (b->fate == FATE_SENT)
        b->fate = FATE_UNKNOWN;
}

void truth_lost(struct truth *t, int topic, int partition, int64_t end)
{
    struct truth_partition *p = part_of(t, topic, partition);
    sim_note(t->sim, "lost by right", topic, partition, end);
    t->cut_ns = sim_now(t->sim);
    for (int i = 0; i < TRUTH_CLIENTS; i++) {
        for (int32_t k = 0; k < t->clients[i].n; k++) {
            struct truth_batch *b = &t->clients[i].batches[k];
            if (b->topic != topic || b->partition != partition)
                continue;
            b->after = MIN(b->after, end - 1);
            if (b->offset + b->spec.count > end) {
                b->offset = -1;
                b->fate = b->fate == FATE_ACKED ? FATE_UNKNOWN : b->fate;
            }
        }
    }
    p->n = MIN(p->n, end);
    p->committed = MIN(p->committed, end);
    p->end_seen = MIN(p->end_seen, end);
    p->start = MIN(p->start, end);
}

bool truth_is_stale(const struct truth *t, int topic, int64_t asked_ns)
{
    return t->topics[topic].is_lazy && asked_ns <= t->cut_ns;
}

/* ---- rot ---- */
void truth_rotten(struct truth *t, int topic, int partition, int64_t from, int64_t to, bool sick)
{
    struct truth_partition *p = part_of(t, topic, partition);
    p->rotten_from = from;
    p->rotten_to = to;
    p->is_sick = sick;
}

int64_t truth_damage_told(struct truth *t, int topic, int partition, int64_t offset)
{
    const struct truth_partition *p = part_of(t, topic, partition);
    if (!is_rotten(p, offset))
        sim_fail(t->sim, "C1", "%s-%d: what is at %lld is told to be damaged", t->topics[topic].name, partition,
                 (long long)offset);
    return p->rotten_to;
}

/* ---- reading ---- */
/* What was known to stand between two offsets is left out: may it be? */
static void check_left_out(struct truth *t, int topic, int partition, int64_t from, int64_t to)
{
    const struct truth_topic *tt = &t->topics[topic];
    const struct truth_partition *p = &tt->parts[partition];
    if (tt->compacts || tt->internal)
        return;
    if (from < to && from < p->committed)
        sim_fail(t->sim, "C7", "%s-%d: a reader at %lld is given %lld", tt->name, partition, (long long)from, (long long)to);
}

static void check_record(struct truth *t, int topic, int partition, const struct sim_batch_head *h, const struct sim_record *r)
{
    const struct truth_topic *tt = &t->topics[topic];
    struct truth_batch *b = truth_batch(t, r->client, r->batch);
    if (r->client < 0 || b == NULL || b->topic != topic || b->partition != partition || r->index >= b->spec.count)
        sim_fail(t->sim, "C3", "%s-%d offset %lld: nobody sent this here (%d.%d.%d)", tt->name, partition, (long long)r->offset,
                 r->client, r->batch, r->index);
    if (r->key != sim_batch_key(&b->spec, r->index))
        sim_fail(t->sim, "C3", "%s-%d offset %lld has another key than it was sent with", tt->name, partition,
                 (long long)r->offset);
    if (!tt->compacts && !b->is_loose && (h->crc != b->crc || h->count != b->spec.count))
        sim_fail(t->sim, "C3", "%s at %lld is not the bytes that were sent", where(t, b), (long long)r->offset);
    batch_at(t, b, r->offset - r->index);
    check_order(t, b);
}

int64_t truth_read(struct truth *t, int topic, int partition, const uint8_t *p, size_t n, int64_t expected, int64_t start)
{
    struct sim_batch_head h;
    struct sim_records it;
    struct sim_record r;
    const char *name = t->topics[topic].name;
    const char *wrong = sim_batch_head(p, n, &h);
    if (wrong != NULL && expected >= 0 && is_rotten(part_of(t, topic, partition), expected))
        return -1;
    if (wrong != NULL)
        sim_fail(t->sim, "C3", "%s-%d: a batch at %lld was read: %s", name, partition, (long long)h.base_offset, wrong);
    int64_t next = h.base_offset + h.last_offset_delta + 1;
    if (expected >= 0 && next <= expected)
        sim_fail(t->sim, "C6", "%s-%d: a reader at %lld is given a batch that ends at %lld", name, partition,
                 (long long)expected, (long long)next - 1);
    if (expected >= 0 && h.base_offset > expected)
        check_left_out(t, topic, partition, expected, h.base_offset);
    if (next <= start)
        sim_fail(t->sim, "S13", "%s-%d: the batch at %lld was deleted, and is read", name, partition, (long long)h.base_offset);
    if (t->topics[topic].internal)
        return next;
    sim_records_start(&it, p, &h);
    int rc;
    while ((rc = sim_records_next(&it, &r)) == 1) {
        check_record(t, topic, partition, &h, &r);
        t->n_read++;
    }
    if (rc < 0)
        sim_fail(t->sim, "C3", "%s-%d: the records of the batch at %lld cannot be read", name, partition,
                 (long long)h.base_offset);
    return next;
}

void truth_start_asked(struct truth *t, int topic, int partition, int64_t offset)
{
    struct truth_partition *p = part_of(t, topic, partition);
    p->start_asked = MAX(p->start_asked, offset);
}

void truth_start_acked(struct truth *t, int topic, int partition, int64_t low)
{
    struct truth_partition *p = part_of(t, topic, partition);
    truth_start_shown(t, topic, partition, low, p->start);
    p->start = MAX(p->start, low);
}

void truth_start_shown(struct truth *t, int topic, int partition, int64_t start, int64_t at_least)
{
    struct truth_partition *p = part_of(t, topic, partition);
    const struct truth_topic *tt = &t->topics[topic];
    if (start < at_least)
        sim_fail(t->sim, "S13", "%s-%d starts at %lld, but all below %lld was deleted", tt->name, partition, (long long)start,
                 (long long)at_least);
    if (start > p->start_asked && !tt->retains && !tt->internal)
        sim_fail(t->sim, "C1", "%s-%d starts at %lld, but deletion was asked for up to %lld", tt->name, partition,
                 (long long)start, (long long)p->start_asked);
    p->start_seen = MAX(p->start_seen, start);
}

void truth_end_shown(struct truth *t, int topic, int partition, int64_t hw, int64_t at_least)
{
    struct truth_partition *p = part_of(t, topic, partition);
    if (hw < at_least)
        sim_fail(t->sim, "C10", "%s-%d ends at %lld; it was told before that it ends at %lld", t->topics[topic].name, partition,
                 (long long)hw, (long long)at_least);
    p->end_seen = MAX(p->end_seen, hw);
}

void truth_producer_id(struct truth *t, int64_t pid, int16_t epoch)
{
    for (int i = 0; i < t->n_pids && epoch == 0; i++)
        if (t->pids[i] == pid)
            sim_fail(t->sim, "C2", "two producers are given the id %lld", (long long)pid);
    if (t->n_pids < TRUTH_PIDS)
        t->pids[t->n_pids++] = pid;
}

/* ---- groups ---- */
void truth_commit_asked(struct truth *t, int group, int topic, int partition, int64_t offset)
{
    int64_t *asked = &t->groups[group].asked[topic][partition];
    *asked = MAX(*asked, offset);
}

void truth_commit_acked(struct truth *t, int group, int topic, int partition, int64_t offset)
{
    int64_t *acked = &t->groups[group].acked[topic][partition];
    *acked = MAX(*acked, offset);
}

void truth_commit_shown(struct truth *t, int group, int topic, int partition, int64_t offset, int64_t at_least)
{
    const struct truth_group *g = &t->groups[group];
    const char *name = t->topics[topic].name;
    if (offset < at_least && !t->positions_may_go)
        sim_fail(t->sim, "C11", "group %s: %s-%d is committed at %lld, but %lld was acknowledged before that was asked", g->name,
                 name, partition, (long long)offset, (long long)at_least);
    if (offset > g->asked[topic][partition])
        sim_fail(t->sim, "C11", "group %s: %s-%d is committed at %lld, but nobody committed more than %lld", g->name, name,
                 partition, (long long)offset, (long long)g->asked[topic][partition]);
}
