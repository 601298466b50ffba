/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The topics that a group's members subscribe to, as a set of names: read from the metadata that they sent when they joined.
 * Where a single one cannot be read, the set is not known and every topic counts as subscribed, since positions of a topic
 * that is read must not expire. Pure.
 */
#include "daemon/group/group_topics.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/varint.h"

struct group_topic {
    UT_hash_handle hh;
    size_t n;
    char name[];
};

static struct group_topic *topic_find(const struct group_topics *t, const char *name, size_t n)
{
    struct group_topic *e;

    HASH_FIND(hh, t->table, name, n, e);
    return e;
}

static void topic_add(struct group_topics *t, const uint8_t *name, size_t n)
{
    if (topic_find(t, (const char *)name, n) != NULL)
        return;
    struct group_topic *e = xmalloc(sizeof *e + n);
    e->n = n;
    memcpy(e->name, name, n);
    HASH_ADD_KEYPTR(hh, t->table, e->name, e->n, e);
}

/* Adds the topics of one subscription; false when it is not of the known form. */
static bool subscription_add(struct group_topics *t, struct slice s)
{
    if (s.n < 6 || (int16_t)get_be16(s.p) < 0)
        return false;
    int32_t n_topics = (int32_t)get_be32(s.p + 2);
    s = slice_of(s.p + 6, s.n - 6);
    for (int32_t i = 0; i < n_topics; i++) {
        size_t n = s.n >= 2 ? get_be16(s.p) : 0;
        if (s.n < 2 || n > s.n - 2)
            return false;
        topic_add(t, s.p + 2, n);
        s = slice_of(s.p + 2 + n, s.n - 2 - n);
    }
    return n_topics >= 0;
}

static bool member_add(struct group_topics *t, const struct group *g, const struct group_member *m)
{
    const struct group_protocol *p = g->protocol != NULL ? group_member_protocol(m, g->protocol) : NULL;

    return p != NULL && subscription_add(t, slice_of(p->metadata, (size_t)p->metadata_bytes));
}

void group_topics_init(struct group_topics *t, const struct group *g)
{
    *t = (struct group_topics){ .known =
                                    g->protocol_type != NULL && strcmp(g->protocol_type, "consumer") == 0 };
    for (const struct group_member *m = g->members; t->known && m != NULL; m = m->hh.next)
        t->known = member_add(t, g, m);
}

void group_topics_done(struct group_topics *t)
{
    struct group_topic *e, *next;

    HASH_ITER (hh, t->table, e, next) {
        HASH_DEL(t->table, e);
        free(e);
    }
}

bool group_topics_has(const struct group_topics *t, const char *topic)
{
    return !t->known || topic_find(t, topic, strlen(topic)) != NULL;
}
