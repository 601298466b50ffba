/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A member's states, its birth and its end; see member.h and member_int.h. On the loop's thread.
 *
 * A function that calls the owner back does so last: the owner may answer from inside the callback.
 */
#include <errno.h>
#include <string.h>

#include "lib/client/member_int.h"

enum {
    SESSION_TIMEOUT_MS = 45000,
    HEARTBEAT_MS = 3000,
    REBALANCE_TIMEOUT_MS = 300000,
    RETRY_BACKOFF_MS = 100,
    METADATA_MS = 60000,
};

/*
 *   idle --join--> joining --(leads) planning--> syncing --> loading --> owning --> releasing --> joining ...
 *
 * - joining -> joining: the coordinator gave an id, or does not know it any more
 * - joining, planning, syncing, loading -> waiting: something failed that passes; waiting -> joining
 * - syncing, loading -> joining: another rebalance began
 * - owning -> releasing: a rebalance, the loss of the generation, or the owner closes
 * - any but idle -> leaving -> over: the owner closes; any -> over: refused for good, or nobody to tell
 */
#define B(state) (1u << MEMBER_##state)
static const uint16_t member_next[] = {
    [MEMBER_IDLE] = B(JOINING) | B(OVER),
    [MEMBER_WAITING] = B(JOINING) | B(LEAVING) | B(OVER),
    [MEMBER_JOINING] = B(JOINING) | B(WAITING) | B(PLANNING) | B(SYNCING) | B(LEAVING) | B(OVER),
    [MEMBER_PLANNING] = B(SYNCING) | B(WAITING) | B(LEAVING) | B(OVER),
    [MEMBER_SYNCING] = B(LOADING) | B(JOINING) | B(WAITING) | B(LEAVING) | B(OVER),
    [MEMBER_LOADING] = B(OWNING) | B(JOINING) | B(WAITING) | B(LEAVING) | B(OVER),
    [MEMBER_OWNING] = B(RELEASING) | B(OVER),
    [MEMBER_RELEASING] = B(JOINING) | B(LEAVING) | B(OVER),
    [MEMBER_LEAVING] = B(OVER),
    [MEMBER_OVER] = 0,
};
#undef B

void member_move(struct member *m, enum member_state to)
{
    KCHECK(member_next[m->state] & (1u << to));
    m->state = to;
}

/* What Kafka's own clients make of each error. What is not named here and does not pass would only come
 * again. */
enum member_reaction member_react(int rc, enum kerr err)
{
    switch (err) {
    case KERR_NONE:
        break;
    case KERR_REBALANCE_IN_PROGRESS:
        return REACT_REJOIN;
    case KERR_ILLEGAL_GENERATION:
        return REACT_LOST;
    case KERR_UNKNOWN_MEMBER_ID:
        return REACT_FORGOTTEN;
    default:
        return kerr_retriable(err) ? REACT_AGAIN : REACT_FATAL;
    }
    if (rc == 0)
        return REACT_NONE;
    return rc == -ETIMEDOUT || rc == -EPIPE ? REACT_AGAIN : REACT_FATAL;
}

/* ---- birth ---- */
static int32_t or_default(int32_t value, int32_t otherwise)
{
    return value > 0 ? value : otherwise;
}

static int64_t or_default_ms(int64_t value, int64_t otherwise)
{
    return value > 0 ? value : otherwise;
}

static void on_close_timer(struct timer *t)
{
    member_end(container_of(t, struct member, close_timer), 0, KERR_NONE);
}

static void on_over_turn(struct deferred *d)
{
    struct member *m = container_of(d, struct member, over_turn);
    commit_cancel_all(m);
    m->ops->ended(m, m->over_rc, m->over_err);
}

static void member_take_topics(struct member *m, const char *const *topics, size_t n)
{
    m->topics = xcalloc(MAX(n, (size_t)1), sizeof *m->topics);
    m->n_topics = n;
    for (size_t i = 0; i < n; i++)
        m->topics[i] = kstr_of(xstrdup(topics[i]));
}

struct member *member_new(struct client *c, const struct member_config *cfg, const struct member_ops *ops,
                          void *user)
{
    struct member *m = xcalloc(1, sizeof *m);
    m->c = c;
    m->loop = client_loop(c);
    m->ops = ops;
    m->user = user;
    m->group = xstrdup(cfg->group);
    m->instance_id = cfg->instance_id != NULL ? xstrdup(cfg->instance_id) : NULL;
    member_take_topics(m, cfg->topics, cfg->n_topics);
    m->session_timeout_ms = or_default(cfg->session_timeout_ms, SESSION_TIMEOUT_MS);
    m->heartbeat_ms = or_default(cfg->heartbeat_ms, HEARTBEAT_MS);
    m->rebalance_timeout_ms = or_default(cfg->rebalance_timeout_ms, REBALANCE_TIMEOUT_MS);
    m->retry_backoff_ms = or_default_ms(cfg->retry_backoff_ms, RETRY_BACKOFF_MS);
    m->metadata_ms = or_default_ms(cfg->metadata_ms, METADATA_MS);
    m->id = xstrdup("");
    m->generation = -1;
    m->retry.cb = join_on_retry;
    m->beat_timer.cb = beat_on_timer;
    m->look.cb = plan_on_look;
    m->close_timer.cb = on_close_timer;
    m->commit_turn.cb = commit_on_turn;
    m->over_turn.cb = on_over_turn;
    TAILQ_INIT(&m->waiting);
    TAILQ_INIT(&m->sent);
    arena_init(&m->round);
    arena_init(&m->owned);
    return m;
}

void member_join(struct member *m)
{
    KCHECK(m->state == MEMBER_IDLE);
    join_start(m);
}

/* ---- what it is ---- */
void *member_user(const struct member *m)
{
    return m->user;
}

const char *member_id(const struct member *m)
{
    return m->id;
}

int32_t member_generation(const struct member *m)
{
    return m->generation;
}

bool member_leads(const struct member *m)
{
    return m->leads;
}

void member_set_id(struct member *m, const char *id, size_t n)
{
    char *old = m->id; /* id may point into it */
    m->id = xstrndup(id, n);
    free(old);
}

int64_t member_deadline(const struct member *m, int64_t ms)
{
    return loop_now_ms(m->loop) + ms;
}

/* ---- giving back ---- */
void member_revoke(struct member *m, bool lost)
{
    member_move(m, MEMBER_RELEASING);
    timer_clear(m->loop, &m->look);
    plan_stop(m);
    m->released = false;
    m->ops->revoked(m, lost);
}

void member_lose(struct member *m, enum member_reaction r)
{
    m->generation = -1;
    if (r == REACT_FORGOTTEN)
        member_set_id(m, "", 0);
    beat_stop(m);
    if (m->state == MEMBER_OWNING) {
        member_revoke(m, true);
    } else if (m->state != MEMBER_RELEASING) { /* there it goes on as soon as the owner is done */
        join_stop(m);
        plan_stop(m);
        join_again(m);
    }
}

void member_released_check(struct member *m)
{
    if (m->state != MEMBER_RELEASING || !m->released || !commit_is_idle(m))
        return;
    if (m->closing)
        member_leave(m);
    else
        join_start(m);
}

void member_released(struct member *m)
{
    KCHECK(m->state == MEMBER_RELEASING || m->state == MEMBER_OVER);
    m->released = true;
    member_released_check(m);
}

/* ---- the end ---- */
static void member_stop(struct member *m)
{
    join_stop(m);
    plan_stop(m);
    beat_stop(m);
    timer_clear(m->loop, &m->look);
    timer_clear(m->loop, &m->close_timer);
}

void member_end(struct member *m, int rc, enum kerr err)
{
    member_stop(m);
    member_move(m, MEMBER_OVER);
    m->generation = -1;
    m->over_rc = rc;
    m->over_err = err;
    loop_defer(m->loop, &m->over_turn);
}

static void on_left(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    struct member *m = container_of(call, struct member, call);
    (void)rc, (void)err, (void)version, (void)response; /* who is not let go by hand goes by its time-out */
    member_end(m, 0, KERR_NONE);
}

void member_leave(struct member *m)
{
    join_stop(m);
    plan_stop(m);
    beat_stop(m);
    if (m->id[0] == '\0' || m->instance_id != NULL) {
        member_end(m, 0, KERR_NONE);
        return;
    }
    member_move(m, MEMBER_LEAVING);
    wire_defaults(&wire_leave_group_request, &m->body.leave);
    m->body.leave.group_id = kstr_of(m->group);
    m->body.leave.member_id = kstr_of(m->id);
    m->call = (struct client_call){
        .target = TARGET_COORDINATOR,
        .topic = m->group,
        .request = &wire_leave_group_request,
        .body = &m->body.leave,
        .max_version = 2, /* the last for one member */
        .deadline_ms = m->close_timer.due_ms,
        .cb = on_left,
    };
    client_call(m->c, &m->call);
}

void member_close(struct member *m, int64_t deadline_ms)
{
    if (m->closing || m->state == MEMBER_OVER)
        return;
    m->closing = true;
    timer_set(m->loop, &m->close_timer, deadline_ms);
    if (m->state == MEMBER_IDLE) {
        member_end(m, 0, KERR_NONE);
    } else if (m->state == MEMBER_OWNING || m->state == MEMBER_RELEASING) {
        if (m->state == MEMBER_OWNING)
            member_move(m, MEMBER_RELEASING);
        timer_clear(m->loop, &m->look);
        plan_stop(m);
        member_released(m);
    } else if (m->state != MEMBER_JOINING || m->id[0] != '\0') {
        member_leave(m);
    }
    /* else the answer brings an id that the coordinator would wait for: it is used to leave */
}

void member_free(struct member *m)
{
    if (m == NULL)
        return;
    member_stop(m);
    loop_defer_cancel(m->loop, &m->over_turn);
    commit_cancel_all(m);
    for (size_t i = 0; i < m->n_topics; i++)
        free((char *)(uintptr_t)m->topics[i].p);
    free(m->topics);
    free(m->group);
    free(m->instance_id);
    free(m->id);
    free(m->protocol);
    bytebuf_done(&m->subscription);
    arena_done(&m->round);
    arena_done(&m->owned);
    free(m);
}
