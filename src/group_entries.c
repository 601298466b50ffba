/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consumer groups as their coordinators tell them: state, members, committed positions; and what the cluster
 * says of the partitions they are in. One thread.
 */
#include "src/group_entries.h"

#include <stdlib.h>
#include <string.h>

#include "lib/client/assign.h"

/* ---- committed positions ---- */
struct waiting {
    struct session *s;
    bool done;
    int rc;
    enum kerr err;
    struct position *positions;
    size_t n;
};

static void wait_done(struct waiting *w)
{
    while (!w->done)
        loop_run_once(w->s->loop, -1);
}

static void on_fetched(struct positions_fetch *f, int rc, enum kerr err, const struct position *ret, size_t n)
{
    struct waiting *w = f->user;
    struct arena *a = &w->s->arena;

    w->done = true;
    w->rc = rc;
    w->err = err;
    w->positions = arena_array(a, n, sizeof *ret);
    for (size_t i = 0; i < n; i++) {
        struct position *p = &w->positions[w->n];
        *p = ret[i];
        p->topic = arena_strdup(a, ret[i].topic);
        p->metadata = ret[i].metadata != NULL ? arena_strdup(a, ret[i].metadata) : NULL;
        w->n += p->offset >= 0;
    }
}

static int group_fetch_positions(struct session *s, struct group *g)
{
    struct waiting w = { .s = s };
    struct positions_fetch f = {
        .group = g->name,
        .all = true,
        .deadline_ms = loop_now_ms(s->loop) + s->timeout_ms,
        .cb = on_fetched,
        .user = &w,
    };

    positions_fetch(s->client, &f);
    wait_done(&w);
    if (w.rc != 0) {
        session_complain(s, g->name, w.rc, w.err);
        return CLI_FAILED;
    }
    g->positions = w.positions;
    g->n_positions = w.n;
    return CLI_OK;
}

static void on_committed(struct positions_commit *pc, int rc, enum kerr err)
{
    struct waiting *w = pc->user;

    w->done = true;
    w->rc = rc;
    w->err = err;
}

int group_commit(struct session *s, const char *group, struct position *positions, size_t n)
{
    struct waiting w = { .s = s };
    struct positions_commit pc = {
        .group = group,
        .member_id = "",
        .generation = -1,
        .positions = positions,
        .n = n,
        .deadline_ms = loop_now_ms(s->loop) + s->timeout_ms,
        .cb = on_committed,
        .user = &w,
    };

    positions_commit(s->client, &pc);
    wait_done(&w);
    if (w.rc == 0)
        return CLI_OK;
    /* what a coordinator answers to a commit of a stranger while the group has members */
    if (w.err == KERR_UNKNOWN_MEMBER_ID || w.err == KERR_ILLEGAL_GENERATION)
        complain(s->args, "group %s has got members meanwhile: nothing was changed; stop them first", group);
    else
        session_complain(s, group, w.rc, w.err);
    return CLI_FAILED;
}

/* ---- a group ---- */
static enum kerr judge_describe(struct client_call *call, int16_t version, const void *response)
{
    const struct describe_groups_response *r = response;

    (void)call, (void)version;
    return r->n_groups == 1 ? (enum kerr)r->groups[0].error_code : KERR_UNKNOWN_SERVER_ERROR;
}

int group_describe(struct session *s, const char *name, struct group *ret)
{
    struct describe_groups_request req;
    struct kstr groups[] = { kstr_of(name) };

    wire_defaults(&wire_describe_groups_request, &req);
    req.groups = groups;
    req.n_groups = 1;
    const struct describe_groups_response *r =
        session_call(s, &(struct session_call){ .target = TARGET_COORDINATOR,
                                                .group = name,
                                                .request = &wire_describe_groups_request,
                                                .body = &req,
                                                .judge = judge_describe });
    if (r == NULL)
        return CLI_FAILED;
    enum kerr err = judge_describe(NULL, 0, r);
    if (err != KERR_NONE && err != KERR_GROUP_ID_NOT_FOUND) {
        complain_kerr(s->args, name, err, KSTR_NULL);
        return CLI_FAILED;
    }
    *ret = (struct group){ .name = name, .told = &r->groups[0] };
    return group_fetch_positions(s, ret);
}

bool group_is_known(const struct group *g)
{
    return !kstr_eqz(g->told->group_state, "Dead") || g->n_positions > 0;
}

bool group_has_members(const struct group *g)
{
    return g->told->n_members > 0;
}

const char *group_member_assignment(struct session *s, const struct describe_groups_response_members *m,
                                    int32_t *ret_n)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct assign_part *parts;
    size_t n;

    *ret_n = 0;
    if (assign_read_parts(m->member_assignment, &s->arena, &parts, &n) != 0)
        return ""; /* while the group rebalances there is none */
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && kstr_eq(parts[i].topic, parts[i - 1].topic))
            bytebuf_printf(&b, ",%d", parts[i].partition);
        else
            bytebuf_printf(&b, "%s%.*s:%d", i > 0 ? ";" : "", KSTR_FMT(parts[i].topic), parts[i].partition);
    }
    *ret_n = (int32_t)n;
    return arena_strdup(&s->arena, bytebuf_cstr(&b));
}

/* ---- its partitions ---- */
static int part_compare(const void *x, const void *y)
{
    const struct group_part *a = x, *b = y;
    int d = strcmp(a->topic, b->topic);

    return d != 0 ? d : a->partition < b->partition ? -1 : a->partition > b->partition;
}

struct given { /* to members */
    struct assign_part *parts;
    size_t n;
};

static size_t group_read_given(struct session *s, const struct group *g, struct given *given)
{
    size_t n = 0;

    for (int32_t i = 0; i < g->told->n_members; i++) {
        if (assign_read_parts(g->told->members[i].member_assignment, &s->arena, &given[i].parts,
                              &given[i].n) != 0)
            given[i].n = 0;
        n += given[i].n;
    }
    return n;
}

size_t group_parts(struct session *s, const struct group *g, struct group_part **ret)
{
    struct given *given = arena_array(&s->arena, (size_t)g->told->n_members, sizeof *given);
    size_t n_given = group_read_given(s, g, given), n = 0;
    struct group_part *parts = arena_array(&s->arena, g->n_positions + n_given, sizeof *parts);

    for (size_t i = 0; i < g->n_positions; i++)
        parts[n++] = (struct group_part){ .topic = g->positions[i].topic,
                                          .partition = g->positions[i].partition,
                                          .current = g->positions[i].offset };
    for (int32_t i = 0; i < g->told->n_members; i++) {
        for (size_t k = 0; k < given[i].n; k++) {
            struct group_part sought = { .topic = arena_printf(&s->arena, "%.*s",
                                                               KSTR_FMT(given[i].parts[k].topic)),
                                         .partition = given[i].parts[k].partition,
                                         .current = -1,
                                         .member = &g->told->members[i] };
            /* positions are sorted, and come first */
            struct group_part *found = bsearch(&sought, parts, g->n_positions, sizeof *parts, part_compare);
            if (found != NULL)
                found->member = sought.member;
            else
                parts[n++] = sought;
        }
    }
    qsort(parts, n, sizeof *parts, part_compare);
    *ret = parts;
    return n;
}

static size_t parts_topics(struct session *s, const struct group_part *parts, size_t n, const char ***ret)
{
    size_t n_topics = 0;

    *ret = arena_array(&s->arena, n, sizeof **ret);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(parts[i].topic, parts[i - 1].topic) != 0)
            (*ret)[n_topics++] = parts[i].topic;
    }
    return n_topics;
}

static const struct part *part_find(const struct part *all, size_t n, const struct group_part *p)
{
    for (size_t i = 0; i < n; i++) {
        if (all[i].meta->partition_index == p->partition && kstr_eqz(all[i].topic->name, p->topic))
            return &all[i];
    }
    return NULL;
}

bool group_parts_ask(struct session *s, struct group_part *parts, size_t n)
{
    const char **topics;
    struct part *all;
    bool failed;
    size_t n_topics = parts_topics(s, parts, n, &topics);

    if (n_topics == 0)
        return true;
    const struct metadata_response *md = session_metadata(s, topics, n_topics);
    if (md == NULL)
        return false;
    size_t n_all = parts_list(s, md, &all, &failed);
    bool ok = parts_ask_ends(s, all, n_all);
    parts_complain(s, all, n_all);
    for (size_t i = 0; i < n; i++)
        parts[i].part = part_find(all, n_all, &parts[i]);
    return ok;
}

/* ---- all groups ---- */
static enum kerr judge_list(struct client_call *call, int16_t version, const void *response)
{
    (void)call, (void)version;
    return (enum kerr)((const struct list_groups_response *)response)->error_code;
}

static const struct list_groups_response *broker_groups(struct session *s, int32_t broker_id)
{
    struct list_groups_request req;

    wire_defaults(&wire_list_groups_request, &req);
    const struct list_groups_response *r =
        session_call(s, &(struct session_call){ .target = TARGET_BROKER,
                                                .broker_id = broker_id,
                                                .request = &wire_list_groups_request,
                                                .body = &req,
                                                .judge = judge_list });
    if (r != NULL && r->error_code != KERR_NONE) {
        complain_kerr(s->args, "the list of groups", r->error_code, KSTR_NULL);
        return NULL;
    }
    return r;
}

static int listed_compare(const void *x, const void *y)
{
    return strcmp(((const struct group_listed *)x)->name, ((const struct group_listed *)y)->name);
}

int groups_list(struct session *s, struct group_listed **ret, size_t *ret_n)
{
    static const char *const no_topics[] = { NULL };
    const struct metadata_response *md = session_metadata(s, no_topics, 0);

    if (md == NULL)
        return CLI_FAILED;
    *ret = NULL;
    *ret_n = 0;
    for (int32_t i = 0; i < md->n_brokers; i++) {
        const struct list_groups_response *r = broker_groups(s, md->brokers[i].node_id);
        if (r == NULL)
            return CLI_FAILED;
        struct group_listed *more = arena_array(&s->arena, *ret_n + (size_t)r->n_groups, sizeof *more);
        if (*ret_n > 0)
            memcpy(more, *ret, *ret_n * sizeof *more);
        for (int32_t k = 0; k < r->n_groups; k++)
            more[(*ret_n)++] = (struct group_listed){
                .name = arena_printf(&s->arena, "%.*s", KSTR_FMT(r->groups[k].group_id)),
                .state = r->groups[k].group_state,
                .protocol_type = r->groups[k].protocol_type,
            };
        *ret = more;
    }
    if (*ret_n > 0)
        qsort(*ret, *ret_n, sizeof **ret, listed_compare);
    return CLI_OK;
}
