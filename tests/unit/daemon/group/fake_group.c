/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The surroundings of one group, made of numbers: its clock, its records (written when the test says so, in the order asked
 * for) and its answers, which end up in tickets. fake_check() holds the group against its invariants; in the end each ticket
 * has had exactly one answer (G5).
 */
#include "unit.h"

#include "tests/unit/daemon/group/fake_group.h"
#include "lib/base/attr.h"
#include "lib/base/mem.h"

static void keep(char dst[FAKE_ID_MAX], const char *s)
{
    snprintf(dst, FAKE_ID_MAX, "%s", s != NULL ? s : "(null)");
}

static int64_t env_wall_ms(struct group *g)
{
    return 1000000000 + ((struct fake *)g->user)->now_ms;
}

static void env_answer_join(struct group *g, void *waiter, const struct group_join_answer *a)
{
    struct ticket *t = waiter;

    (void)g;
    assert_true(t->is_join);
    t->answers++;
    t->err = a->err;
    t->generation = a->generation;
    keep(t->protocol_type, a->protocol_type);
    keep(t->protocol, a->protocol);
    keep(t->leader, a->leader);
    keep(t->member_id, a->member_id);
    t->skip_assignment = a->skip_assignment;
    t->n_members = a->members_of != NULL ? 0 : -1;
    if (a->members_of != NULL)
        for (const struct group_member *m = a->members_of->members; m != NULL; m = m->hh.next)
            if (t->n_members < FAKE_MEMBERS_MAX)
                keep(t->members[t->n_members++], m->id);
}

static void env_answer_sync(struct group *g, void *waiter, const struct group_sync_answer *a)
{
    struct ticket *t = waiter;

    (void)g;
    assert_false(t->is_join);
    t->answers++;
    t->err = a->err;
    keep(t->protocol_type, a->protocol_type);
    keep(t->protocol, a->protocol);
    snprintf(t->assignment, sizeof t->assignment, "%.*s", (int)a->assignment_bytes,
             a->assignment != NULL ? (const char *)a->assignment : "");
}

static void env_persist(struct group *g, int64_t seq)
{
    struct fake *f = g->user;

    assert_true(f->n_writing < (int)ARRAY_LEN(f->writing));
    f->writing[f->n_writing++] = seq;
    f->n_records++;
}

struct fake *fake_new(int32_t initial_delay_ms)
{
    struct fake *f = xcalloc(1, sizeof *f);

    f->env = (struct group_env){
        .wall_ms = env_wall_ms,
        .answer_join = env_answer_join,
        .answer_sync = env_answer_sync,
        .persist = env_persist,
        .initial_delay_ms = initial_delay_ms,
        .new_member_timeout_ms = 300000,
        .size_max = INT32_MAX,
    };
    f->now_ms = 1000;
    f->g = group_new("g", &f->env, f);
    return f;
}

void fake_check(const struct fake *f)
{
    const struct group *g = f->g;
    int32_t parked = 0;
    int64_t bytes = 0;

    for (const struct group_member *m = g->members; m != NULL; m = m->hh.next) {
        bytes += m->bytes;
        parked += m->parked_join != NULL;
        if (m->parked_join != NULL)
            assert_true(g->state == GROUP_PREPARING || (g->state == GROUP_STABLE && m->return_seq != 0));
        if (m->parked_sync != NULL)
            assert_int_equal(g->state, GROUP_COMPLETING);
    }
    assert_int_equal(parked, g->n_parked_joins);
    assert_true(g->pending == NULL ? bytes == g->bytes : bytes < g->bytes); /* G6 */
    if (g->state == GROUP_COMPLETING || g->state == GROUP_STABLE) {
        assert_non_null(g->leader);
        assert_non_null(group_member_find(g, g->leader));
    }
    if (g->state == GROUP_EMPTY)
        assert_null(g->members);
}

void fake_free(struct fake *f)
{
    fake_check(f);
    group_unload(f->g, KERR_NOT_COORDINATOR);
    for (struct ticket *t = f->tickets, *next; t != NULL; t = next) {
        next = t->next;
        assert_int_equal(t->answers, 1);
        free(t);
    }
    group_free(f->g);
    free(f);
}

static struct ticket *ticket_new(struct fake *f, bool is_join)
{
    struct ticket *t = xcalloc(1, sizeof *t);

    t->is_join = is_join;
    t->next = f->tickets;
    f->tickets = t;
    return t;
}

/* Cuts "a,b=c" into at most max pieces at commas. */
static int32_t split(const char *list, struct kstr *ret, int32_t max)
{
    int32_t n = 0;

    while (list != NULL && *list != '\0' && n < max) {
        size_t len = strcspn(list, ",");
        ret[n++] = kstr_bytes(list, len);
        list += len + (list[len] == ',');
    }
    return n;
}

struct ticket *fake_join(struct fake *f, struct fake_join j)
{
    struct ticket *t = ticket_new(f, true);
    struct kstr names[16], metadata[16];
    char new_id[FAKE_ID_MAX];

    snprintf(new_id, sizeof new_id, "%s-%d", j.instance != NULL ? j.instance : "m", f->next_id++);
    struct group_join rq = {
        .member_id = j.id != NULL ? j.id : "",
        .new_member_id = new_id,
        .instance_id = j.instance,
        .client_id = j.client != NULL ? j.client : "c",
        .client_host = "/127.0.0.1",
        .session_timeout_ms = j.session_ms > 0 ? j.session_ms : 10000,
        .rebalance_timeout_ms = j.rebalance_ms > 0 ? j.rebalance_ms : 60000,
        .protocol_type = j.type != NULL ? j.type : "consumer",
        .names = names,
        .metadata = metadata,
        .id_required = j.id_required,
        .can_skip_assignment = j.can_skip,
    };
    rq.n_protocols = split(j.protocols != NULL ? j.protocols : "range", names, ARRAY_LEN(names));
    for (int32_t i = 0; i < rq.n_protocols; i++)
        metadata[i] = kstr_of(j.metadata != NULL ? j.metadata : "m");
    group_join(f->g, &rq, t, f->now_ms);
    fake_check(f);
    return t;
}

struct ticket *fake_sync_as(struct fake *f, const char *id, const char *instance, int32_t generation,
                            const char *type, const char *protocol, const char *assignments)
{
    struct ticket *t = ticket_new(f, false);
    struct kstr ids[FAKE_MEMBERS_MAX], bytes[FAKE_MEMBERS_MAX];
    struct group_sync rq = { .member_id = id,
                             .instance_id = instance,
                             .generation = generation,
                             .protocol_type = type,
                             .protocol = protocol,
                             .member_ids = ids,
                             .assignments = bytes };

    rq.n_assignments = split(assignments, ids, FAKE_MEMBERS_MAX);
    for (int32_t i = 0; i < rq.n_assignments; i++) {
        const char *eq = memchr(ids[i].p, '=', (size_t)ids[i].n);
        assert_non_null(eq);
        bytes[i] = kstr_bytes(eq + 1, (size_t)(ids[i].p + ids[i].n - eq - 1));
        ids[i].n = (int32_t)(eq - ids[i].p);
    }
    group_sync(f->g, &rq, t, f->now_ms);
    fake_check(f);
    return t;
}

struct ticket *fake_sync(struct fake *f, const char *id, int32_t generation, const char *assignments)
{
    return fake_sync_as(f, id, NULL, generation, NULL, NULL, assignments);
}

enum kerr fake_heartbeat(struct fake *f, const char *id, int32_t generation)
{
    return group_heartbeat(f->g, id, NULL, generation, f->now_ms);
}

enum kerr fake_leave(struct fake *f, const char *id)
{
    enum kerr err = group_leave(f->g, id, NULL, f->now_ms);

    fake_check(f);
    return err;
}

enum kerr fake_commit(struct fake *f, const char *id, int32_t generation)
{
    return group_may_commit(f->g, id, NULL, generation, f->now_ms);
}

void fake_written(struct fake *f, enum kerr err)
{
    while (f->n_writing > 0) {
        int64_t seq = f->writing[0];
        memmove(f->writing, f->writing + 1, sizeof f->writing[0] * (size_t)--f->n_writing);
        group_persisted(f->g, seq, err, f->now_ms);
        fake_check(f);
    }
}

void fake_sleep(struct fake *f, int64_t ms)
{
    int64_t until = f->now_ms + ms;

    while (group_due_ms(f->g) <= until) {
        f->now_ms = MAX(f->now_ms, group_due_ms(f->g));
        int64_t before = group_due_ms(f->g);
        if (f->before_tick != NULL)
            f->before_tick(f);
        group_tick(f->g, f->now_ms);
        assert_true(group_due_ms(f->g) > before); /* no deadline stands still */
        fake_check(f);
    }
    f->now_ms = until;
}

static void all_join(struct fake *f, int n, char ids[][FAKE_ID_MAX], struct ticket *tickets[])
{
    for (int i = 0; i < n; i++)
        tickets[i] = fake_join(f, (struct fake_join){ .id = ids[i][0] != '\0' ? ids[i] : NULL });
}

struct fake *fake_in_state(enum group_state state, int n, char ids[][FAKE_ID_MAX])
{
    struct fake *f = fake_new(3000);
    struct ticket *tickets[FAKE_MEMBERS_MAX];

    for (int i = 0; i < n; i++)
        ids[i][0] = '\0';
    if (state == GROUP_EMPTY || state == GROUP_DEAD) {
        if (state == GROUP_DEAD)
            group_unload(f->g, KERR_NOT_COORDINATOR);
        return f;
    }
    all_join(f, n, ids, tickets);
    fake_sleep(f, 6000);
    for (int i = 0; i < n; i++) {
        assert_answer(tickets[i], KERR_NONE);
        keep(ids[i], tickets[i]->member_id);
    }
    assert_state(f, GROUP_COMPLETING);
    if (state == GROUP_COMPLETING)
        return f;
    char list[512] = "";
    for (int i = 0; i < n; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s=a%d,", ids[i], i);
    for (int i = 0; i < n; i++)
        fake_sync(f, ids[i], f->g->generation, i == 0 ? list : NULL);
    fake_written(f, KERR_NONE);
    assert_state(f, GROUP_STABLE);
    if (state == GROUP_PREPARING) { /* the leader has rejoined, the others have not yet */
        fake_join(f, (struct fake_join){ .id = ids[0] });
        assert_state(f, GROUP_PREPARING);
    }
    return f;
}
