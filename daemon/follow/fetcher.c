/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One leader: its lanes, the requests they send, and dealing the answers out to the partitions. On the shard's thread.
 *
 * A lane that is free takes what is ready, up to a share. Every partition is named in each request: lanes keep those that
 * move apart from those that are idle, which are named again only when something came for one of them, or when the leader
 * has held them for replica.fetch.wait.max.ms.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/config/broker_config.h"
#include "daemon/follow/follow_int.h"
#include "daemon/replica/throttle.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

enum {
    FETCH_VERSION_MIN = 15, /* the first that carries the broker epoch */
    CONNECT_BACKOFF_MS = 50,
    ANSWER_MS = 30000, /* beyond what the leader may wait */
    SHARE_MIN = 32,    /* partitions of a request; more when there are more than half of the lanes can have */
};

static const struct broker_config *config_of(const struct fetcher *fe)
{
    return fe->shard->follow->deps.config;
}

/* ---- the answer ---- */
/* All that was asked for rests. */
static void lane_fail(struct lane *la, const char *why)
{
    for (int32_t i = 0; i < la->n_asked; i++) {
        struct part *p = la->asked[i];
        la->asked[i] = NULL;
        if (p != NULL)
            part_failed(p, why);
    }
    la->n_asked = 0;
}

/* The answer names what was asked, in the same order. */
static bool names_what_was_asked(const struct lane *la, const struct fetch_response *rsp)
{
    int64_t n = 0;

    if (rsp->n_responses != la->request.n_topics)
        return false;
    for (int32_t i = 0; i < rsp->n_responses; i++) {
        const struct fetch_response_responses *t = &rsp->responses[i];
        const struct fetch_request_topics *q = &la->request.topics[i];
        if (t->n_partitions != q->n_partitions || !uuid_eq(&t->topic_id, &q->topic_id))
            return false;
        for (int32_t k = 0; k < t->n_partitions; k++)
            if (t->partitions[k].partition_index != q->partitions[k].partition)
                return false;
        n += t->n_partitions;
    }
    return n == la->n_asked;
}

static void lane_deal_out(struct lane *la, const struct fetch_response *rsp, struct rcbuf *frame)
{
    int32_t slot = 0;

    for (int32_t i = 0; i < rsp->n_responses; i++)
        for (int32_t k = 0; k < rsp->responses[i].n_partitions; k++, slot++) {
            struct part *p = la->asked[slot];
            la->asked[slot] = NULL;
            if (p != NULL)
                part_answered(p, &rsp->responses[i].partitions[k], frame);
        }
}

static void lane_on_answer(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    struct lane *la = call->user;
    const struct fetch_response *rsp = response;

    (void)err;
    la->out = false;
    if (rc < 0)
        lane_fail(la, strerror(-rc));
    else if (version < FETCH_VERSION_MIN)
        lane_fail(la, "it knows no fetches of followers (version 15)");
    else if (rsp->error_code != KERR_NONE)
        lane_fail(la, kerr_name((enum kerr)rsp->error_code));
    else if (!names_what_was_asked(la, rsp))
        lane_fail(la, "its answer is to another question");
    else
        lane_deal_out(la, rsp, client_call_frame(call));
    la->n_asked = 0;
    fetcher_stir(la->fetcher);
}

/* ---- the request ---- */
/* What keeps to a rate asks for no more than may come; a batch that is larger comes whole. */
static int32_t bytes_to_ask(const struct fetcher *fe, const struct part *p)
{
    int64_t most = config_of(fe)->replica_fetch_max_bytes;

    if (p->at.throttled)
        most = MIN(most, throttle_room(fe->shard->follow->deps.throttle, loop_now_ms(fe->shard->loop)));
    return (int32_t)most;
}

/* Neighbours of one topic are named together; the order is that in which they became ready, so that none is always last. */
static void name_part(struct lane *la, struct fetch_request_partitions *q, const struct part *p)
{
    struct fetch_request *r = &la->request;
    struct fetch_request_topics *t = r->n_topics > 0 ? &r->topics[r->n_topics - 1] : NULL;

    if (t == NULL || !uuid_eq(&t->topic_id, &p->pt->topic_id)) {
        t = &r->topics[r->n_topics++];
        *t = (struct fetch_request_topics){ .topic = kstr_of(p->pt->topic), .topic_id = p->pt->topic_id, .partitions = q };
    }
    t->n_partitions++;
    *q = (struct fetch_request_partitions){
        .partition = p->pt->id,
        .current_leader_epoch = p->at.leader_epoch,
        .fetch_offset = p->anew >= 0 ? p->anew : p->at.leo,
        .last_fetched_epoch = p->anew >= 0 ? -1 : p->at.last_epoch,
        .log_start_offset = p->at.start_offset,
        .partition_max_bytes = bytes_to_ask(la->fetcher, p),
    };
}

/* Takes what is ready into la->asked. */
static void lane_take_parts(struct lane *la)
{
    struct fetcher *fe = la->fetcher;
    int32_t max = MAX(fe->n_parts / (LANES / 2), SHARE_MIN);

    la->asked = xreallocarray(la->asked, (size_t)max, sizeof(struct part *));
    la->n_asked = 0;
    for (struct part *p; la->n_asked < max && (p = TAILQ_FIRST(&fe->ready)) != NULL;)
        if (part_ask(p, la, la->n_asked))
            la->asked[la->n_asked++] = p;
}

static void lane_fill_request(struct lane *la)
{
    const struct follow_deps *deps = &la->fetcher->shard->follow->deps;
    const struct broker_config *c = deps->config;
    size_t n = (size_t)la->n_asked;

    arena_done(&la->arena);
    wire_defaults(&wire_fetch_request, &la->request);
    la->request.replica_state.replica_id = deps->me;
    la->request.replica_state.replica_epoch = deps->broker_epoch(deps->arg);
    la->request.max_wait_ms = c->replica_fetch_wait_max_ms;
    la->request.min_bytes = c->replica_fetch_min_bytes;
    la->request.max_bytes = c->replica_fetch_response_max_bytes;
    la->request.topics = arena_array(&la->arena, n, sizeof *la->request.topics);
    struct fetch_request_partitions *flat = arena_array(&la->arena, n, sizeof *flat);
    for (size_t i = 0; i < n; i++)
        name_part(la, &flat[i], la->asked[i]);
}

static void lane_send(struct lane *la)
{
    struct fetcher *fe = la->fetcher;

    lane_take_parts(la);
    if (la->n_asked == 0)
        return;
    if (fe->client == NULL) {
        lane_fail(la, "it has no address");
        return;
    }
    lane_fill_request(la);
    la->out = true;
    la->call = (struct client_call){
        .target = TARGET_ANY, /* the client knows no other broker */
        .request = &wire_fetch_request,
        .body = &la->request,
        .max_version = -1,
        .deadline_ms = loop_now_ms(fe->shard->loop) + config_of(fe)->replica_fetch_wait_max_ms + ANSWER_MS,
        .once = true,
        .parks = true,
        .cb = lane_on_answer,
        .user = la,
    };
    client_call(fe->client, &la->call);
}

static void fetcher_turn(struct deferred *d)
{
    struct fetcher *fe = container_of(d, struct fetcher, turn);

    for (int i = 0; i < LANES && !TAILQ_EMPTY(&fe->ready); i++)
        if (!fe->lanes[i].out && fe->lanes[i].n_flushing == 0)
            lane_send(&fe->lanes[i]);
}

void fetcher_stir(struct fetcher *fe)
{
    loop_defer(fe->shard->loop, &fe->turn);
}

/* ---- birth and end ---- */
static struct client *connect_to(struct shard *sh, const char *host, int32_t port)
{
    char address[300], id[32];
    bool v6 = strchr(host, ':') != NULL;
    struct client_config cfg = {
        .brokers = address,
        .client_id = id,
        .retry_backoff_ms = CONNECT_BACKOFF_MS,
        .request_timeout_ms = ANSWER_MS,
        .frame_max = INT32_MAX, /* the leader bounds it; memory is taken as bytes arrive */
    };

    snprintf(address, sizeof address, v6 ? "[%s]:%d" : "%s:%d", host, port);
    snprintf(id, sizeof id, "broker-%d-follower", sh->follow->deps.me);
    return client_new(sh->loop, sh->follow->workers, &cfg);
}

static struct fetcher *fetcher_new(struct shard *sh, int32_t leader, const char *host, int32_t port)
{
    struct fetcher *fe = xcalloc(1, sizeof *fe);

    fe->shard = sh;
    fe->leader = leader;
    fe->host = xstrdup(host);
    fe->port = port;
    fe->client = connect_to(sh, host, port);
    if (fe->client == NULL)
        log_error("broker %d is registered at %s:%d, which is no address: nothing is fetched from it", leader, host, port);
    TAILQ_INIT(&fe->ready);
    fe->turn.cb = fetcher_turn;
    for (int i = 0; i < LANES; i++) {
        fe->lanes[i].fetcher = fe;
        arena_init(&fe->lanes[i].arena);
    }
    LIST_INSERT_HEAD(&sh->fetchers, fe, link);
    return fe;
}

struct fetcher *fetcher_get(struct shard *sh, int32_t leader, const char *host, int32_t port)
{
    struct fetcher *fe;

    LIST_FOREACH (fe, &sh->fetchers, link)
        if (fe->leader == leader && fe->port == port && strcmp(fe->host, host) == 0)
            return fe;
    return fetcher_new(sh, leader, host, port);
}

static void fetcher_free(struct fetcher *fe)
{
    KCHECK(TAILQ_EMPTY(&fe->ready));
    LIST_REMOVE(fe, link);
    loop_defer_cancel(fe->shard->loop, &fe->turn);
    for (int i = 0; i < LANES; i++) {
        client_cancel(fe->client, &fe->lanes[i].call);
        arena_done(&fe->lanes[i].arena);
        free(fe->lanes[i].asked);
    }
    if (fe->client != NULL)
        client_free(fe->client);
    free(fe->host);
    free(fe);
}

void fetcher_leave(struct fetcher *fe)
{
    KCHECK(fe->n_parts > 0);
    if (--fe->n_parts == 0)
        fetcher_free(fe);
}
