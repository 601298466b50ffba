/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups out of records that anybody may have written, and then lived with. Input: pieces of u8 what, and what it
 * needs. Records: u16 key length (65535: null), key, u16 value length, value. Then requests of clients, time, and records
 * that end well or badly. Whatever the records say, the groups are legal, every parked request is answered once, and
 * what a group is written as is read back as the same.
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/group/group_int.h"
#include "daemon/group/group_log.h"
#include "daemon/group/group_replay.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

enum { WRITING_MAX = 64, STEPS_MAX = 200, GROUPS_MAX = 64 };

struct world {
    struct group_env env;
    struct group_entry *groups;
    int64_t now_ms, offset;
    atomic_llong bytes; /* G6 */
    int parked;
    struct {
        struct group *g;
        int64_t seq;
    } writing[WRITING_MAX];
    int n_writing;
    const uint8_t *p;
    size_t n;
};
static struct world w;

/* ---- what the machines ask ---- */

static int64_t env_wall_ms(struct group *g)
{
    (void)g;
    return w.now_ms;
}

static void answered(void *waiter)
{
    bool *waits = waiter;

    KCHECK(*waits);
    *waits = false;
    w.parked--;
    free(waits);
}

static void env_answer_join(struct group *g, void *waiter, const struct group_join_answer *a)
{
    (void)g;
    if (a->err == KERR_NONE)
        KCHECK(a->member_id != NULL && a->leader != NULL && a->protocol != NULL);
    for (const struct group_member *m = a->members_of != NULL ? a->members_of->members : NULL; m != NULL; m = m->hh.next)
        group_member_protocol(m, a->protocol);
    answered(waiter);
}

static void env_answer_sync(struct group *g, void *waiter, const struct group_sync_answer *a)
{
    (void)g;
    (void)a;
    answered(waiter);
}

static void env_persist(struct group *g, int64_t seq)
{
    KCHECK(w.n_writing < WRITING_MAX);
    w.writing[w.n_writing].g = g;
    w.writing[w.n_writing++].seq = seq;
}

/* ---- input ---- */

static uint8_t u8(void)
{
    if (w.n == 0)
        return 0;
    w.n--;
    return *w.p++;
}

static struct kstr bytes(void)
{
    uint16_t n = (uint16_t)(u8() << 8);
    n |= u8();
    if (n == UINT16_MAX)
        return KSTR_NULL;
    size_t take = MIN((size_t)n, w.n);
    struct kstr s = kstr_bytes((const char *)w.p, take);
    w.p += take;
    w.n -= take;
    return s;
}

/* ---- the table ---- */

static struct group_entry *add(void *arg, const char *id)
{
    struct group_entry *e = xcalloc(1, sizeof *e);

    (void)arg;
    e->group = group_new(id, &w.env, e);
    HASH_ADD_KEYPTR(hh, w.groups, e->group->id, strlen(e->group->id), e);
    return e;
}

static void drop(void *arg, struct group_entry *e)
{
    (void)arg;
    HASH_DEL(w.groups, e);
    committed_done(&e->offsets);
    group_free(e->group);
    free(e);
}

static void check(const struct group *g)
{
    int32_t parked = 0;

    for (const struct group_member *m = g->members; m != NULL; m = m->hh.next) {
        KCHECK(m->id[0] != '\0' && group_member_find(g, m->id) == m);
        KCHECK(m->instance_id == NULL || group_instance_find(g, m->instance_id) == m);
        KCHECK(m->parked_join == NULL || g->state == GROUP_PREPARING || (g->state == GROUP_STABLE && m->return_seq != 0));
        KCHECK(m->parked_sync == NULL || g->state == GROUP_COMPLETING);
        parked += m->parked_join != NULL;
    }
    KCHECK(parked == g->n_parked_joins && g->generation >= 0);
    if (g->state == GROUP_COMPLETING || g->state == GROUP_STABLE)
        KCHECK(g->leader != NULL && group_member_find(g, g->leader) != NULL && g->protocol != NULL);
    KCHECK(g->state != GROUP_EMPTY || g->members == NULL);
}

/* A group as it is written and read again. */
static void check_written(const struct group *g)
{
    struct batch_builder b;
    struct batch_producer nobody = { .id = -1, .epoch = -1, .base_sequence = -1 };
    struct bytebuf batch = { 0 };
    struct record_iter it;
    struct record r;
    struct group_log_record rec;
    struct arena a;

    if (g->state != GROUP_STABLE && g->state != GROUP_EMPTY)
        return;
    arena_init(&a);
    batch_builder_init(&b);
    group_log_add_group(&b, g, 1);
    KCHECK(batch_builder_finish(&b, CODEC_NONE, 0, &nobody, 0, &batch) == 0);
    record_iter_init(&it);
    KCHECK(record_iter_start(&it, slice_of(batch.p, batch.n), SIZE_MAX) == 0 && record_iter_next(&it, &r) == 1);
    KCHECK(group_log_read(&r, &a, &rec) == NULL);
    struct group *copy = group_new(rec.group, &w.env, NULL);
    KCHECK(group_log_restore(copy, rec.value, &a, w.now_ms) == NULL || g->generation > GROUP_RESTORED_GENERATION_MAX);
    KCHECK(strcmp(copy->id, g->id) == 0 && group_n_members(copy) == group_n_members(g));
    if (g->members != NULL)
        KCHECK(strcmp(copy->leader, g->leader) == 0 && strcmp(copy->protocol, g->protocol) == 0);
    for (const struct group_member *m = g->members; m != NULL; m = m->hh.next) {
        const struct group_member *c = group_member_find(copy, m->id);
        KCHECK(c != NULL && c->assignment_bytes == m->assignment_bytes);
    }
    group_free(copy);
    record_iter_done(&it);
    bytebuf_done(&batch);
    batch_builder_done(&b);
    arena_done(&a);
}

/* ---- living with it ---- */

static void *wait_for(void)
{
    bool *waits = xmalloc(sizeof *waits);

    *waits = true;
    w.parked++;
    return waits;
}

static const struct group_member *some_member(const struct group *g)
{
    int i = u8();
    const struct group_member *m = g->members;

    for (; i > 0 && m != NULL && m->hh.next != NULL; i--)
        m = m->hh.next;
    return m;
}

static void do_join(struct group *g, uint8_t how)
{
    static int64_t ids;
    const struct group_member *m = how & 1 ? some_member(g) : NULL;
    const char *instance = how & 2 ? (m != NULL && m->instance_id != NULL ? m->instance_id : "s") : NULL;
    CLEANUP(freep) char *id = xstrdup(m != NULL && (how & 4) ? m->id : "");
    CLEANUP(freep) char *inst = instance != NULL ? xstrdup(instance) : NULL;
    CLEANUP(freep) char *new_id = xasprintf("new-%lld", (long long)++ids);
    CLEANUP(freep) char *type = xstrdup(g->protocol_type != NULL && g->protocol_type[0] != '\0' ? g->protocol_type : "consumer");
    CLEANUP(freep) char *chosen = xstrdup(g->protocol != NULL ? g->protocol : "range");
    struct kstr names[2] = { how & 8 ? kstr_of("range") : kstr_of(chosen), kstr_of("rr") };
    struct kstr metadata[2] = { kstr_of("m"), kstr_of("n") };
    struct group_join rq = {
        .member_id = id,
        .new_member_id = new_id,
        .instance_id = inst,
        .client_id = "c",
        .client_host = "h",
        .session_timeout_ms = 1000 * (1 + u8() % 20),
        .rebalance_timeout_ms = 1000 * (u8() % 20),
        .protocol_type = type,
        .names = names,
        .metadata = metadata,
        .n_protocols = 1 + (how >> 4 & 1),
        .id_required = how & 32,
        .can_skip_assignment = how & 64,
    };

    group_join(g, &rq, wait_for(), w.now_ms);
}

static void do_sync(struct group *g)
{
    const struct group_member *m = some_member(g);
    struct kstr ids[2] = { KSTR_NULL, KSTR_NULL }, parts[2] = { kstr_of("a"), kstr_of("b") };

    if (m == NULL)
        return;
    CLEANUP(freep) char *id = xstrdup(m->id);
    CLEANUP(freep) char *instance = m->instance_id != NULL ? xstrdup(m->instance_id) : NULL;
    ids[0] = ids[1] = kstr_of(id);
    struct group_sync rq = { .member_id = id,
                             .instance_id = instance,
                             .generation = g->generation,
                             .member_ids = ids,
                             .assignments = parts,
                             .n_assignments = 2 };
    group_sync(g, &rq, wait_for(), w.now_ms);
}

static void do_small(struct group *g, uint8_t what)
{
    const struct group_member *m = some_member(g);
    CLEANUP(freep) char *id = xstrdup(m != NULL ? m->id : "");
    CLEANUP(freep) char *instance = m != NULL && m->instance_id != NULL ? xstrdup(m->instance_id) : NULL;

    if (what % 3 == 0)
        group_leave(g, what & 4 && instance != NULL ? "" : id, instance, w.now_ms);
    else if (what % 3 == 1)
        group_heartbeat(g, id, instance, g->generation, w.now_ms);
    else
        group_may_commit(g, id, instance, what & 4 ? -1 : g->generation, w.now_ms);
}

static void written(enum kerr err)
{
    while (w.n_writing > 0) {
        struct group *g = w.writing[0].g;
        int64_t seq = w.writing[0].seq;
        memmove(w.writing, w.writing + 1, sizeof w.writing[0] * (size_t)--w.n_writing);
        group_persisted(g, seq, err, w.now_ms);
        check(g);
    }
}

static void sleep_ms(int64_t ms)
{
    struct group_entry *e;

    w.now_ms += ms;
    for (e = w.groups; e != NULL; e = e->hh.next)
        for (int i = 0; i < 100 && group_due_ms(e->group) <= w.now_ms; i++) {
            group_tick(e->group, w.now_ms);
            check(e->group);
            if (w.n_writing > WRITING_MAX / 2)
                written(KERR_NONE);
        }
}

static void look_at_offsets(const struct group_entry *e)
{
    struct group_topics t = { 0 };

    group_topics_init(&t, e->group);
    for (const struct committed_offset *o = e->offsets.table; o != NULL; o = o->hh.next) {
        KCHECK(committed_find(&e->offsets, o->topic, o->partition) == o && o->partition >= 0);
        committed_expired(e->group, &t, o, 1000, w.now_ms);
        committed_expired(e->group, &t, o, INT64_MAX, INT64_MAX / 2);
    }
    group_topics_done(&t);
}

static void live(void)
{
    for (int i = 0; i < STEPS_MAX && w.n > 0 && w.groups != NULL; i++) {
        struct group_entry *e = w.groups;
        for (int k = u8() % GROUPS_MAX; k > 0 && e->hh.next != NULL; k--)
            e = e->hh.next;
        uint8_t what = u8();
        switch (what % 6) {
        case 0:
        case 1:
            do_join(e->group, u8());
            break;
        case 2:
            do_sync(e->group);
            break;
        case 3:
            do_small(e->group, what / 6);
            break;
        case 4:
            written(what & 16 ? KERR_COORDINATOR_NOT_AVAILABLE : KERR_NONE);
            break;
        default:
            sleep_ms(what & 16 ? 300000 : 100 * what);
        }
        check(e->group);
        if (w.n_writing > WRITING_MAX / 2)
            written(KERR_NONE);
    }
}

static void end(void)
{
    struct group_entry *e, *next;

    for (e = w.groups; e != NULL; e = e->hh.next) {
        check_written(e->group);
        look_at_offsets(e);
        group_unload(e->group, KERR_NOT_COORDINATOR);
    }
    KCHECK(w.parked == 0);
    HASH_ITER (hh, w.groups, e, next)
        drop(NULL, e);
    KCHECK(atomic_load(&w.bytes) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct arena a;

    w = (struct world){
        .env = { .wall_ms = env_wall_ms,
                 .answer_join = env_answer_join,
                 .answer_sync = env_answer_sync,
                 .persist = env_persist,
                 .initial_delay_ms = n % 2 == 0 ? 0 : 3000,
                 .new_member_timeout_ms = 300000,
                 .size_max = n % 3 == 0 ? 2 : INT32_MAX,
                 .all_bytes = &w.bytes,
                 .all_bytes_max = n % 5 == 0 ? 2000 : INT64_MAX },
        .now_ms = 1000,
        .p = p,
        .n = n,
    };
    struct group_replay rp = { .table = &w.groups, .add = add, .env = &w.env, .n_shards = 1, .now_ms = w.now_ms };

    arena_init(&a);
    for (uint8_t left = u8(); left > 0 && w.n > 0; left--) {
        struct record r = { .key = bytes(), .value = bytes() };
        group_replay_record(&rp, &r, w.offset++, &a);
    }
    group_replay_end(&rp, drop);
    KCHECK((rp.aside == 0) == (rp.why == NULL));
    for (struct group_entry *e = w.groups; e != NULL; e = e->hh.next) {
        check(e->group);
        check_written(e->group);
        look_at_offsets(e);
    }
    live();
    end();
    return 0;
}
