/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the client believes about the cluster: brokers, controller, topics and their leaders. On
 * the loop's thread.
 *
 * Metadata requests are numbered as they start; a topic remembers the number that told it. A call
 * that was misled waits for a higher number, so an answer that was on its way already cannot mislead
 * it again. What the calls lack is gathered in `wanted` and asked in one request at a time.
 * Replaced topics are freed in the next round: client_topic's promise.
 */
#include <errno.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/client/client_int.h"

/* ---- topics ---- */
static void topic_free(struct topic_entry *e)
{
    arena_done(&e->arena);
    free(e);
}

static void metadata_bury(struct task *t)
{
    struct client *c = container_of(t, struct client, bury);
    struct topic_entry *e;
    while ((e = STAILQ_FIRST(&c->dead_topics)) != NULL) {
        STAILQ_REMOVE_HEAD(&c->dead_topics, dead);
        topic_free(e);
    }
}

static void topic_drop(struct client *c, struct topic_entry *e)
{
    HASH_DEL(c->topics, e);
    STAILQ_INSERT_TAIL(&c->dead_topics, e, dead);
    loop_post(c->loop, &c->bury);
}

struct topic_entry *metadata_topic(struct client *c, const char *name)
{
    struct topic_entry *e;
    HASH_FIND_STR(c->topics, name, e);
    return e;
}

static int by_id(const void *a, const void *b)
{
    int32_t x = ((const struct client_partition *)a)->id, y = ((const struct client_partition *)b)->id;
    return (x > y) - (x < y);
}

static void topic_fill(struct client *c, struct topic_entry *e, const struct metadata_response_topics *t)
{
    struct arena *a = &e->arena;
    struct client_partition *parts = arena_array(a, (size_t)t->n_partitions, sizeof *parts);
    for (int32_t i = 0; i < t->n_partitions; i++) {
        const struct metadata_response_partitions *p = &t->partitions[i];
        parts[i] = (struct client_partition){
            .id = p->partition_index,
            .leader = p->leader_id,
            .leader_epoch = p->leader_epoch,
            .replicas = arena_dup(a, p->replica_nodes, (size_t)p->n_replica_nodes * sizeof(int32_t)),
            .n_replicas = p->n_replica_nodes,
            .isr = arena_dup(a, p->isr_nodes, (size_t)p->n_isr_nodes * sizeof(int32_t)),
            .n_isr = p->n_isr_nodes,
            .err = (enum kerr)p->error_code,
        };
    }
    qsort(parts, (size_t)t->n_partitions, sizeof *parts, by_id);
    e->t = (struct client_topic){
        .name = arena_kstr(a, t->name).p,
        .id = t->topic_id,
        .err = (enum kerr)t->error_code,
        .internal = t->is_internal,
        .partitions = parts,
        .n_partitions = t->n_partitions,
        .fetched_ms = loop_now_ms(c->loop),
    };
}

static void topic_put(struct client *c, const struct metadata_response_topics *t, const char *name,
                      uint64_t seq)
{
    struct topic_entry *e = metadata_topic(c, name), *old = e;
    if (old != NULL && old->seq > seq)
        return;
    e = xcalloc(1, sizeof *e);
    arena_init(&e->arena);
    e->seq = seq;
    topic_fill(c, e, t);
    e->t.name = arena_strdup(&e->arena, name);
    if (old != NULL)
        topic_drop(c, old);
    HASH_ADD_KEYPTR(hh, c->topics, e->t.name, strlen(e->t.name), e);
}

/* There is no such topic, or it is not for us: the calls that asked for its leader end. */
static void topic_refused(struct client *c, const char *name, enum kerr err, uint64_t seq)
{
    struct topic_entry *e = metadata_topic(c, name);
    if (e != NULL && e->seq <= seq)
        topic_drop(c, e);
    struct client_call_state *s = TAILQ_FIRST(&c->routing), *next;
    for (; s != NULL; s = next) {
        next = TAILQ_NEXT(s, entry);
        if (s->call->target == TARGET_LEADER && s->need_seq != 0 && s->need_seq <= seq &&
            strcmp(s->call->topic, name) == 0) {
            s->last_err = err;
            call_end_later(s, -kerr_errno(err));
        }
    }
}

/* ---- answers ---- */
static void take_brokers(struct client *c, const struct metadata_response *r, uint64_t seq)
{
    if (seq < c->controller_seq || r->n_brokers == 0)
        return;
    struct broker *b;
    TAILQ_FOREACH (b, &c->brokers, entry)
        b->known = false;
    for (int32_t i = 0; i < r->n_brokers; i++)
        broker_upsert(c, r->brokers[i].node_id, r->brokers[i].host, r->brokers[i].port)->known = true;
    TAILQ_FOREACH (b, &c->brokers, entry) {
        if (b->silent && !b->known)
            broker_disconnect(b, "it does not answer, and is not in the cluster any more");
    }
    c->controller = r->controller_id;
    c->controller_seq = seq;
    if (!kstr_is_null(r->cluster_id)) {
        free(c->cluster_id);
        c->cluster_id = kstr_dup(r->cluster_id);
    }
}

static void forget_all_but(struct client *c, uint64_t seq)
{
    struct topic_entry *e, *tmp;
    HASH_ITER (hh, c->topics, e, tmp) {
        if (e->seq < seq)
            topic_drop(c, e);
    }
    c->all_ms = loop_now_ms(c->loop);
}

static void take_metadata(struct client *c, const struct metadata_response *r, uint64_t seq, bool all)
{
    take_brokers(c, r, seq);
    for (int32_t i = 0; i < r->n_topics; i++) {
        const struct metadata_response_topics *t = &r->topics[i];
        CLEANUP(freep) char *name = kstr_dup(t->name);
        enum kerr err = (enum kerr)t->error_code;
        if (name == NULL)
            continue;
        if (err == KERR_NONE || err == KERR_LEADER_NOT_AVAILABLE)
            topic_put(c, t, name, seq);
        else
            topic_refused(c, name, err, seq);
    }
    if (all)
        forget_all_but(c, seq);
    client_stir(c);
}

/* ---- asking for what calls lack ---- */
void metadata_want_topic(struct client *c, const char *name)
{
    struct wanted_topic *w;
    HASH_FIND_STR(c->wanted, name, w);
    if (w != NULL)
        return;
    w = xcalloc(1, sizeof *w);
    w->name = xstrdup(name);
    HASH_ADD_KEYPTR(hh, c->wanted, w->name, strlen(w->name), w);
}

void metadata_want_brokers(struct client *c)
{
    c->want_brokers = true;
}

bool metadata_is_wanted(const struct client *c)
{
    return !c->asking && (c->wanted != NULL || c->want_brokers);
}

static void ask_body_done(struct metadata_request *body)
{
    for (int32_t i = 0; i < body->n_topics; i++)
        free((char *)body->topics[i].name.p);
    free(body->topics);
    *body = (struct metadata_request){ 0 };
}

/* Moves the wanted names into the request. */
static void ask_body_fill(struct client *c, struct metadata_request *body)
{
    wire_defaults(&wire_metadata_request, body);
    body->topics = xcalloc(HASH_COUNT(c->wanted) + 1, sizeof *body->topics);
    body->n_topics = 0;
    body->allow_auto_topic_creation = false;
    struct wanted_topic *w, *tmp;
    HASH_ITER (hh, c->wanted, w, tmp) {
        HASH_DEL(c->wanted, w);
        struct metadata_request_topics *t = &body->topics[body->n_topics++];
        memset(t, 0, sizeof *t);
        t->name = kstr_of(w->name);
        free(w);
    }
    c->want_brokers = false;
}

static void ask_on_end(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    (void)err;
    (void)version;
    struct client *c = container_of(call, struct client, ask);
    c->asking = false;
    c->asks_done = c->asks;
    ask_body_done(&c->ask_body);
    if (rc == 0)
        take_metadata(c, response, c->ask_seq, false);
    if (!c->ends)
        client_stir(c);
}

void metadata_ask(struct client *c)
{
    if (!metadata_is_wanted(c) || c->ends)
        return;
    ask_body_fill(c, &c->ask_body);
    c->asking = true;
    c->asks++;
    c->ask_seq = ++c->meta_seq;
    c->ask = (struct client_call){
        .target = TARGET_ANY,
        .request = &wire_metadata_request,
        .body = &c->ask_body,
        .max_version = -1,
        .deadline_ms = loop_now_ms(c->loop) + c->cfg.request_timeout_ms,
        .cb = ask_on_end,
    };
    client_call(c, &c->ask);
}

/* ---- refreshes for callers ---- */
static void refresh_on_end(struct client_call *call, int rc, enum kerr err, int16_t version,
                           const void *response)
{
    (void)err;
    (void)version;
    struct client_refresh *r = container_of(call, struct client_refresh, call);
    struct client *c = r->c;
    ask_body_done(&r->body);
    if (rc == 0)
        take_metadata(c, response, r->seq, r->topic == NULL);
    r->cb(r, rc);
}

void client_refresh(struct client *c, struct client_refresh *r)
{
    wire_defaults(&wire_metadata_request, &r->body);
    r->body.allow_auto_topic_creation = false;
    r->body.topics = NULL;
    r->body.n_topics = r->topic == NULL ? -1 : 1;
    if (r->topic != NULL) {
        r->body.topics = xcalloc(1, sizeof *r->body.topics);
        r->body.topics[0].name = kstr_of(xstrdup(r->topic));
    }
    r->c = c;
    r->seq = ++c->meta_seq;
    r->call = (struct client_call){
        .target = TARGET_ANY,
        .request = &wire_metadata_request,
        .body = &r->body,
        .max_version = -1,
        .deadline_ms = r->deadline_ms,
        .cb = refresh_on_end,
    };
    client_call(c, &r->call);
}

void client_refresh_cancel(struct client *c, struct client_refresh *r)
{
    client_cancel(c, &r->call);
    ask_body_done(&r->body);
}

/* ---- the cache for callers ---- */
const struct client_topic *client_topic(struct client *c, const char *name)
{
    struct topic_entry *e = metadata_topic(c, name);
    return e != NULL ? &e->t : NULL;
}

void client_topic_is_stale(struct client *c, const char *name)
{
    struct topic_entry *e = metadata_topic(c, name);
    if (e != NULL)
        e->stale = true;
}

int64_t client_each_topic(struct client *c, void (*f)(void *arg, const struct client_topic *t), void *arg)
{
    struct topic_entry *e, *tmp;
    HASH_ITER (hh, c->topics, e, tmp)
        f(arg, &e->t);
    return c->all_ms;
}

int32_t client_controller(struct client *c)
{
    return c->controller;
}

const char *client_cluster_id(struct client *c)
{
    return c->cluster_id;
}

/* ---- life ---- */
void metadata_init(struct client *c)
{
    STAILQ_INIT(&c->dead_topics);
    c->bury.cb = metadata_bury;
    c->controller = -1;
    c->all_ms = -1;
}

void metadata_done(struct client *c)
{
    client_cancel(c, &c->ask);
    ask_body_done(&c->ask_body);
    struct topic_entry *e, *etmp;
    HASH_ITER (hh, c->topics, e, etmp) {
        HASH_DEL(c->topics, e);
        topic_free(e);
    }
    struct wanted_topic *w, *wtmp;
    HASH_ITER (hh, c->wanted, w, wtmp) {
        HASH_DEL(c->wanted, w);
        free(w->name);
        free(w);
    }
    loop_cancel(c->loop, &c->bury);
    metadata_bury(&c->bury);
    free(c->cluster_id);
    c->cluster_id = NULL;
}
