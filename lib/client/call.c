/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls: phases, retries, deadlines, ends. On the loop's thread.
 *
 * cb runs from the loop only (an answer, a timer, the end of a round), never from inside a
 * function that the caller called. Before it runs the call is in no list and owns no state, so
 * it may be made again or freed by cb.
 */
#include <errno.h>

#include "lib/base/check.h"
#include "lib/client/client_int.h"

void call_move(struct client_call_state *s, enum call_phase phase, struct call_list *to)
{
    if (s->list != NULL)
        TAILQ_REMOVE(s->list, s, entry);
    s->list = to;
    s->phase = phase;
    if (to != NULL)
        TAILQ_INSERT_TAIL(to, s, entry);
}

static void call_free(struct client_call_state *s)
{
    call_move(s, CALL_ENDING, NULL);
    timer_clear(s->c->loop, &s->deadline);
    free(s);
}

/* Lets go of the caller. What was sent keeps its place in the row of answers. */
static struct client_call *call_detach(struct client_call_state *s)
{
    struct client_call *call = s->call;
    struct link *l = s->link;
    KCHECK(call != NULL && call->state == s);
    call->state = NULL;
    s->call = NULL;
    timer_clear(s->c->loop, &s->deadline);
    if (s->phase == CALL_SENT && !l->parks)
        return call;
    bool parked = s->phase == CALL_SENT;
    call_free(s);
    if (parked)
        link_fail(l, "its long poll was given up"); /* nobody can use it until the broker answers */
    return call;
}

/* Its answer, should one come after all, is nobody's. */
void call_ask_elsewhere(struct client_call_state *s)
{
    struct client *c = s->c;
    struct client_call *call = call_detach(s);
    client_call(c, call);
    call->was_sent = true;
}

static void call_on_deadline(struct timer *t)
{
    struct client_call_state *s = container_of(t, struct client_call_state, deadline);
    call_end(s, -ETIMEDOUT, 0, NULL);
}

void client_call(struct client *c, struct client_call *call)
{
    KCHECK(!c->ends && call->state == NULL && call->cb != NULL && call->request->request);
    struct client_call_state *s = xcalloc(1, sizeof *s);
    s->c = c;
    s->call = call;
    s->deadline.cb = call_on_deadline;
    call->state = s;
    call->was_sent = false;
    timer_set(c->loop, &s->deadline, call->deadline_ms);
    /* Those that are in routing already come first. */
    bool first = TAILQ_EMPTY(&c->routing);
    call_move(s, CALL_ROUTING, &c->routing);
    if (first)
        client_route(c);
    else
        client_stir(c);
}

void client_cancel(struct client *c, struct client_call *call)
{
    (void)c;
    if (call->state != NULL)
        call_detach(call->state);
}

bool client_call_was_sent(const struct client_call *call)
{
    return call->was_sent;
}

struct rcbuf *client_call_frame(const struct client_call *call)
{
    return call->frame;
}

void call_end(struct client_call_state *s, int rc, int16_t version, const void *response)
{
    enum kerr err = s->last_err;
    struct client_call *call = call_detach(s);
    call->cb(call, rc, rc == 0 ? KERR_NONE : err, version, response);
}

void call_end_later(struct client_call_state *s, int rc)
{
    s->end_rc = rc;
    s->link = NULL;
    call_move(s, CALL_ENDING, &s->c->ending);
    client_stir(s->c);
}

void client_end_ending(struct client *c)
{
    struct client_call_state *s;
    while ((s = TAILQ_FIRST(&c->ending)) != NULL)
        call_end(s, s->end_rc, 0, NULL);
}

void call_retry(struct client_call_state *s, int64_t at_ms)
{
    s->retry_at_ms = at_ms;
    s->link = NULL;
    call_move(s, CALL_ROUTING, &s->c->routing);
    client_stir(s->c);
}

/* The broker refused for a reason that passes: what we believed about the cluster may be wrong. */
static void call_doubt(struct client_call_state *s)
{
    struct client *c = s->c;
    switch (s->call->target) {
    case TARGET_LEADER:
        client_topic_is_stale(c, s->call->topic);
        break;
    case TARGET_COORDINATOR:
        coordinator_forget(c, s->call->topic);
        break;
    case TARGET_CONTROLLER:
    case TARGET_BROKER:
        s->need_seq = c->meta_seq + 1;
        break;
    case TARGET_ANY:
        break;
    }
}

/* The first time at once: that the leader or the coordinator is another is known as soon as somebody is asked. */
static int64_t call_retry_ms(struct client_call_state *s)
{
    bool moved = s->call->target == TARGET_LEADER || s->call->target == TARGET_COORDINATOR;
    int attempts = s->attempts++;
    return loop_now_ms(s->c->loop) + (moved && attempts == 0 ? 0 : client_backoff_ms(s->c, attempts));
}

void call_lost(struct client_call_state *s)
{
    if (s->call == NULL) {
        call_free(s);
    } else if (s->call->once) {
        call_end_later(s, -EPIPE);
    } else {
        call_doubt(s);
        call_retry(s, call_retry_ms(s));
    }
}

/* Ends the call with the answer, or sets it up for another attempt. */
static void call_judge(struct client_call_state *s, struct rcbuf *frame, const void *response)
{
    struct client_call *call = s->call;
    enum kerr err = call->judge != NULL ? call->judge(call, s->version, response) : KERR_NONE;
    bool retriable = kerr_retriable(err);
    if (retriable)
        call_doubt(s);
    if (retriable && !call->once) {
        s->last_err = err;
        call_retry(s, call_retry_ms(s));
        return;
    }
    int16_t version = s->version;
    call->state = NULL;
    call_free(s);
    call->frame = frame;
    call->cb(call, 0, KERR_NONE, version, response);
}

void call_answered(struct client_call_state *s, struct rcbuf *frame, struct slice body)
{
    s->link = NULL;
    call_move(s, CALL_ENDING, NULL);
    if (s->call == NULL) {
        call_free(s);
        return;
    }
    CLEANUP(arena_done) struct arena a;
    arena_init(&a);
    void *response = arena_alloc(&a, wire_msg_size(s->response));
    if (wire_decode(s->response, s->version, body, &a, response) < 0) {
        s->last_err = KERR_UNKNOWN_SERVER_ERROR;
        call_end(s, -EBADMSG, 0, NULL);
        return;
    }
    call_judge(s, frame, response);
}
