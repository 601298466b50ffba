/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client: its birth and death, the brokers it knows, and the way of a call to a broker. On
 * the loop's thread.
 *
 * Brokers are never forgotten while the client lives: an address that was good once is a way back
 * in when the whole cluster moved. A bootstrap address becomes the broker that the metadata
 * names with the same host and port.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/hostport.h"
#include "lib/base/world.h"
#include "lib/client/client_int.h"

enum {
    BACKOFF_MAX_MS = 1000,
    DEFAULT_PORT = 9092,
};

/* ---- back-off ---- */
static uint64_t next_random(uint64_t *seed)
{
    uint64_t x = *seed += 0x9e3779b97f4a7c15u; /* splitmix64 */
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Doubled each time, and up to a fifth more or less, so that clients that failed together do not come back
 * together. */
int64_t client_backoff_ms(struct client *c, int attempts)
{
    int64_t ms = MIN(c->cfg.retry_backoff_ms << MIN(attempts, 10), (int64_t)BACKOFF_MAX_MS);
    int64_t spread = MAX(ms * 2 / 5, (int64_t)1);
    return ms - spread / 2 + (int64_t)(next_random(&c->jitter) % (uint64_t)spread);
}

/* ---- brokers ---- */
const struct api_range *broker_api(const struct broker *b, int16_t key)
{
    for (int i = 0; i < b->n_apis; i++) {
        if (b->apis[i].key == key)
            return &b->apis[i];
    }
    return NULL;
}

static struct broker *broker_new(struct client *c, int32_t id, char *host, int32_t port)
{
    struct broker *b = xcalloc(1, sizeof *b);
    b->id = id;
    b->host = host;
    b->port = port;
    b->main.c = c;
    link_init(&b->main, b, false);
    TAILQ_INIT(&b->polls);
    TAILQ_INIT(&b->waiting);
    TAILQ_INSERT_TAIL(&c->brokers, b, entry);
    return b;
}

struct broker *broker_find(struct client *c, int32_t id)
{
    struct broker *b;
    TAILQ_FOREACH (b, &c->brokers, entry) {
        if (b->id == id && id >= 0)
            return b;
    }
    return NULL;
}

static struct broker *broker_at(struct client *c, struct kstr host, int32_t port)
{
    struct broker *b;
    TAILQ_FOREACH (b, &c->brokers, entry) {
        if (b->port == port && kstr_eqz(host, b->host))
            return b;
    }
    return NULL;
}

void broker_disconnect(struct broker *b, const char *why)
{
    if (b->main.state != LINK_IDLE)
        link_fail(&b->main, why);
    struct link *l;
    while ((l = TAILQ_FIRST(&b->polls)) != NULL)
        link_fail(l, why);
}

struct broker *broker_upsert(struct client *c, int32_t id, struct kstr host, int32_t port)
{
    struct broker *b = broker_find(c, id);
    if (b != NULL && b->port == port && kstr_eqz(host, b->host))
        return b;
    if (b != NULL) {
        b->id = -1; /* it lives somewhere else now; the old address stays a way in */
        b->known = false;
        broker_disconnect(b, "the broker moved to another address");
    }
    b = broker_at(c, host, port);
    if (b == NULL)
        return broker_new(c, id, kstr_dup(host), port);
    b->id = id;
    return b;
}

static void broker_free(struct client *c, struct broker *b)
{
    TAILQ_REMOVE(&c->brokers, b, entry);
    KCHECK(TAILQ_EMPTY(&b->polls) && TAILQ_EMPTY(&b->waiting));
    link_done(&b->main);
    free(b->host);
    free(b->apis);
    free(b);
}

/* A link for a parked call: one that is idle, or a new one; NULL when the broker has its share. */
static struct link *broker_poll_link(struct client *c, struct broker *b)
{
    struct link *l;
    TAILQ_FOREACH (l, &b->polls, entry) {
        if (link_is_free(l))
            return l;
    }
    if (b->n_polls >= CLIENT_PARKED_MAX)
        return NULL;
    l = xcalloc(1, sizeof *l);
    l->c = c;
    link_init(l, b, true);
    TAILQ_INSERT_TAIL(&b->polls, l, entry);
    b->n_polls++;
    return l;
}

void broker_poll_is_free(struct broker *b, struct link *l)
{
    struct client_call_state *s = TAILQ_FIRST(&b->waiting);
    if (s != NULL)
        link_add(l, s);
}

/* ---- routing ---- */
static bool broker_is_ready(const struct broker *b)
{
    return b->main.state == LINK_READY;
}

/* One that may be tried now; from `first` on, so that each has its turn. */
static struct broker *route_untried(struct client *c, struct broker *first)
{
    int64_t now = loop_now_ms(c->loop);
    struct broker *b = first;
    do {
        if (b->main.state == LINK_IDLE && b->retry_at_ms <= now)
            return b;
        b = TAILQ_NEXT(b, entry) != NULL ? TAILQ_NEXT(b, entry) : TAILQ_FIRST(&c->brokers);
    } while (b != first);
    return NULL;
}

/* A ready broker, else one on its way, else one that may be tried now, else one that is ready and silent; NULL: all have failed
 * just now. */
static struct broker *route_any(struct client *c)
{
    if (c->any == NULL)
        c->any = TAILQ_FIRST(&c->brokers);
    if (broker_is_ready(c->any) && !c->any->silent)
        return c->any;
    struct broker *b, *coming = NULL, *silent = NULL;
    TAILQ_FOREACH (b, &c->brokers, entry) {
        if (broker_is_ready(b) && !b->silent)
            return b;
        if (broker_is_ready(b))
            silent = b;
        else if (b->main.state != LINK_IDLE)
            coming = b;
    }
    if (coming != NULL)
        return coming;
    b = route_untried(c, c->any);
    return b != NULL ? b : silent;
}

static int64_t first_retry_ms(struct client *c)
{
    int64_t at = INT64_MAX;
    struct broker *b;
    TAILQ_FOREACH (b, &c->brokers, entry)
        at = MIN(at, b->retry_at_ms);
    return at;
}

/* What the metadata lacks is asked for; the call waits for a request that starts from now on. */
static struct broker *route_wait_for_metadata(struct client_call_state *s)
{
    struct client *c = s->c;
    if (s->need_seq == 0)
        s->need_seq = c->meta_seq + 1;
    if (s->wanted_ask > c->asks_done)
        return NULL; /* it is being asked already */
    s->wanted_ask = c->asks + 1;
    if (s->call->target == TARGET_LEADER)
        metadata_want_topic(c, s->call->topic);
    else
        metadata_want_brokers(c);
    return NULL;
}

/* The metadata is as new as it has to be, and yet there is no broker to go to: look again later. */
static struct broker *route_look_again(struct client_call_state *s, enum kerr err)
{
    s->last_err = err;
    s->need_seq = s->c->meta_seq + 1;
    s->retry_at_ms = loop_now_ms(s->c->loop) + client_backoff_ms(s->c, s->attempts++);
    return NULL;
}

static struct broker *route_refuse(struct client_call_state *s, enum kerr err)
{
    s->last_err = err;
    call_end_later(s, -kerr_errno(err));
    return NULL;
}

static const struct client_partition *topic_partition(const struct client_topic *t, int32_t id)
{
    for (int32_t lo = 0, hi = t->n_partitions; lo < hi;) {
        int32_t mid = lo + (hi - lo) / 2;
        if (t->partitions[mid].id == id)
            return &t->partitions[mid];
        if (t->partitions[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* Has another topic got the name? */
static bool is_another(const struct client_topic *t, const struct uuid *wanted)
{
    return !uuid_is_zero(wanted) && !uuid_is_zero(&t->id) && !uuid_eq(&t->id, wanted);
}

static struct broker *route_leader(struct client_call_state *s)
{
    struct client *c = s->c;
    struct topic_entry *e = metadata_topic(c, s->call->topic);
    if (e != NULL && e->stale && s->need_seq <= e->seq)
        s->need_seq = c->meta_seq + 1;
    if (e == NULL || e->seq < s->need_seq)
        return route_wait_for_metadata(s);
    bool fresh = s->need_seq > 0;
    if (loop_now_ms(c->loop) - e->t.fetched_ms > c->cfg.metadata_max_age_ms)
        metadata_want_topic(c, s->call->topic); /* in the background */

    if (is_another(&e->t, &s->call->topic_id))
        return fresh ? route_refuse(s, KERR_UNKNOWN_TOPIC_ID) : route_wait_for_metadata(s);
    const struct client_partition *p = topic_partition(&e->t, s->call->partition);
    struct broker *b = p != NULL ? broker_find(c, p->leader) : NULL;
    if (b != NULL)
        return b;
    if (!fresh)
        return route_wait_for_metadata(s);
    if (p == NULL && e->t.err == KERR_NONE)
        return route_refuse(s, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    return route_look_again(s, KERR_LEADER_NOT_AVAILABLE);
}

static struct broker *route_by_id(struct client_call_state *s, int32_t id)
{
    struct client *c = s->c;
    bool fresh = s->need_seq > 0 && c->controller_seq >= s->need_seq;
    if (s->need_seq > 0 && !fresh)
        return route_wait_for_metadata(s);
    struct broker *b = broker_find(c, id);
    if (b != NULL && fresh && !b->known)
        return route_refuse(s, KERR_BROKER_NOT_AVAILABLE); /* it did not answer, and has left the cluster */
    if (b != NULL)
        return b;
    return fresh ? route_look_again(s, KERR_BROKER_NOT_AVAILABLE) : route_wait_for_metadata(s);
}

static struct broker *route_coordinator(struct client_call_state *s)
{
    int32_t id;
    enum kerr err;
    switch (coordinator_find(s->c, s->call->topic, &id, &err)) {
    case COORDINATOR_KNOWN:
        return broker_find(s->c, id);
    case COORDINATOR_REFUSED:
        return route_refuse(s, err);
    case COORDINATOR_ASKING:
        break;
    }
    return NULL;
}

static struct broker *route_target(struct client_call_state *s)
{
    switch (s->call->target) {
    case TARGET_LEADER:
        return route_leader(s);
    case TARGET_BROKER:
        return route_by_id(s, s->call->broker_id);
    case TARGET_CONTROLLER:
        return route_by_id(s, s->c->controller);
    case TARGET_COORDINATOR:
        return route_coordinator(s);
    case TARGET_ANY:
        break;
    }
    struct broker *b = route_any(s->c);
    if (b == NULL)
        s->retry_at_ms = first_retry_ms(s->c);
    return b;
}

static void call_route(struct client_call_state *s)
{
    struct client *c = s->c;
    int64_t now = loop_now_ms(c->loop);
    if (s->retry_at_ms > now)
        return;
    struct broker *b = route_target(s);
    if (b == NULL)
        return;
    if (!broker_is_ready(b) && b->main.state == LINK_IDLE && b->retry_at_ms > now) {
        s->retry_at_ms = b->retry_at_ms;
        return;
    }
    struct link *l = s->call->parks ? broker_poll_link(c, b) : &b->main;
    if (l != NULL)
        link_add(l, s);
    else
        call_move(s, CALL_QUEUED, &b->waiting);
}

void client_route(struct client *c)
{
    int64_t now = loop_now_ms(c->loop), next_ms = INT64_MAX;
    struct client_call_state *s = TAILQ_FIRST(&c->routing), *after;
    for (; s != NULL; s = after) {
        after = TAILQ_NEXT(s, entry);
        call_route(s);
    }
    TAILQ_FOREACH (s, &c->routing, entry) {
        if (s->retry_at_ms > now)
            next_ms = MIN(next_ms, s->retry_at_ms);
    }
    timer_clear(c->loop, &c->route_timer);
    if (next_ms != INT64_MAX)
        timer_set(c->loop, &c->route_timer, next_ms);
    if (metadata_is_wanted(c))
        client_stir(c);
}

static void client_on_route_timer(struct timer *t)
{
    client_route(container_of(t, struct client, route_timer));
}

void client_stir(struct client *c)
{
    loop_defer(c->loop, &c->turn);
}

static void client_turn(struct deferred *d)
{
    struct client *c = container_of(d, struct client, turn);
    client_end_ending(c);
    client_route(c);
    metadata_ask(c);
}

/* ---- bootstrap addresses ---- */
static bool client_add_address(struct client *c, const char *text, size_t n)
{
    struct hostport hp;
    if (!hostport_parse(text, n, &hp) || hp.host.n == 0 || hp.port == 0)
        return false;
    int32_t port = hp.port < 0 ? DEFAULT_PORT : hp.port;
    if (broker_at(c, hp.host, port) == NULL)
        broker_new(c, -1, kstr_dup(hp.host), port);
    return true;
}

static bool client_add_bootstrap(struct client *c, const char *list)
{
    for (const char *s = list; *s != '\0';) {
        size_t n = strcspn(s, ", ");
        if (n > 0 && !client_add_address(c, s, n))
            return false;
        s += n + (s[n] != '\0');
    }
    return !TAILQ_EMPTY(&c->brokers);
}

/* ---- life ---- */
static void client_free_rest(struct client *c)
{
    struct broker *b;
    while ((b = TAILQ_FIRST(&c->brokers)) != NULL)
        broker_free(c, b);
    free((char *)c->cfg.client_id);
    free((char *)c->cfg.brokers);
    free(c);
}

static int64_t or_default(int64_t value, int64_t def)
{
    return value > 0 ? value : def;
}

struct client *client_new(struct loop *lp, struct workers *w, const struct client_config *cfg)
{
    struct client *c = xcalloc(1, sizeof *c);
    c->loop = lp;
    c->workers = w;
    c->cfg = *cfg;
    c->cfg.client_id = xstrdup(cfg->client_id);
    c->cfg.brokers = xstrdup(cfg->brokers);
    c->cfg.request_timeout_ms = or_default(cfg->request_timeout_ms, 30000);
    c->cfg.retry_backoff_ms = or_default(cfg->retry_backoff_ms, 100);
    c->cfg.metadata_max_age_ms = or_default(cfg->metadata_max_age_ms, 300000);
    c->cfg.frame_max = (int32_t)or_default(cfg->frame_max, 100 * 1024 * 1024);
    world_random(loop_world(lp), &c->jitter, sizeof c->jitter);
    c->turn.cb = client_turn;
    c->route_timer.cb = client_on_route_timer;
    TAILQ_INIT(&c->brokers);
    TAILQ_INIT(&c->routing);
    TAILQ_INIT(&c->ending);
    metadata_init(c);
    if (!client_add_bootstrap(c, cfg->brokers)) {
        metadata_done(c);
        client_free_rest(c);
        errno = EINVAL;
        return NULL;
    }
    return c;
}

static void end_all_of(struct call_list *list)
{
    struct client_call_state *s;
    while ((s = TAILQ_FIRST(list)) != NULL)
        call_end(s, -ECANCELED, 0, NULL);
}

static void broker_end_calls(struct broker *b)
{
    struct client_call_state *s, *next;
    end_all_of(&b->waiting);
    end_all_of(&b->main.queued);
    for (s = TAILQ_FIRST(&b->main.sent); s != NULL; s = next) {
        next = TAILQ_NEXT(s, entry);
        if (s->call != NULL)
            call_end(s, -ECANCELED, 0, NULL);
    }
    struct link *l;
    while ((l = TAILQ_FIRST(&b->polls)) != NULL) {
        end_all_of(&l->queued);
        s = TAILQ_FIRST(&l->sent);
        if (s != NULL)
            call_end(s, -ECANCELED, 0, NULL); /* takes the link with it */
        else
            link_fail(l, "the client ends");
    }
}

void client_free(struct client *c)
{
    if (c == NULL)
        return;
    c->ends = true;
    coordinators_done(c);
    metadata_done(c);
    end_all_of(&c->routing);
    end_all_of(&c->ending);
    struct broker *b;
    TAILQ_FOREACH (b, &c->brokers, entry)
        broker_end_calls(b);
    TAILQ_FOREACH (b, &c->brokers, entry)
        broker_disconnect(b, "the client ends");
    timer_clear(c->loop, &c->route_timer);
    loop_defer_cancel(c->loop, &c->turn);
    client_free_rest(c);
}

/* ---- what is known ---- */
struct loop *client_loop(const struct client *c)
{
    return c->loop;
}

size_t client_n_brokers(struct client *c)
{
    size_t n = 0;
    struct broker *b;
    TAILQ_FOREACH (b, &c->brokers, entry)
        n += b->known;
    return n;
}

void client_each_broker(struct client *c, void (*f)(void *arg, int32_t id, const char *host), void *arg)
{
    struct broker *b;
    TAILQ_FOREACH (b, &c->brokers, entry)
        if (b->known)
            f(arg, b->id, b->host);
}

bool client_has_broker(struct client *c, int32_t id)
{
    const struct broker *b = broker_find(c, id);
    return b != NULL && b->known;
}

bool client_has_api(struct client *c, int16_t api_key)
{
    return c->told_apis != NULL && broker_api(c->told_apis, api_key) != NULL;
}
