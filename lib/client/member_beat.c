/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heartbeats, from the answer to JoinGroup until the next one is sent: they keep the session alive, tell of
 * rebalances, and show when the coordinator has forgotten this member, or when it could not be reached for so
 * long that it must have. On the loop's thread.
 */
#include <errno.h>

#include "lib/client/member_int.h"

static void beat_later(struct member *m)
{
    timer_set(m->loop, &m->beat_timer, member_deadline(m, m->heartbeat_ms));
}

static void beat_rebalance(struct member *m)
{
    beat_later(m);
    if (m->state == MEMBER_OWNING)
        member_revoke(m, false);
    else if (m->state == MEMBER_LOADING)
        join_start(m);
    /* else: SyncGroup will be told so, or it is being released already */
}

static void on_beat(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    struct member *m = container_of(call, struct member, beat);
    const struct heartbeat_response *r = response;
    (void)version;
    if (rc == 0)
        err = (enum kerr)r->error_code;
    enum member_reaction reaction = member_react(rc, err);
    switch (reaction) {
    case REACT_NONE:
    case REACT_REJOIN:
        m->heard_ms = m->beat_ms;
        if (reaction == REACT_REJOIN)
            beat_rebalance(m);
        else
            beat_later(m);
        break;
    case REACT_AGAIN: /* the session has run out: see the deadline */
        member_lose(m, REACT_LOST);
        break;
    case REACT_LOST:
    case REACT_FORGOTTEN:
        member_lose(m, reaction);
        break;
    case REACT_FATAL:
        member_end(m, rc != 0 ? rc : -kerr_errno(err), err);
        break;
    }
}

static enum kerr judge_beat(struct client_call *call, int16_t version, const void *response)
{
    (void)call;
    (void)version;
    return (enum kerr)((const struct heartbeat_response *)response)->error_code;
}

void beat_on_timer(struct timer *t)
{
    struct member *m = container_of(t, struct member, beat_timer);
    wire_defaults(&wire_heartbeat_request, &m->beat_body);
    m->beat_body.group_id = kstr_of(m->group);
    m->beat_body.generation_id = m->generation;
    m->beat_body.member_id = kstr_of(m->id);
    m->beat_body.group_instance_id = kstr_of(m->instance_id);
    m->beat_ms = loop_now_ms(m->loop);
    m->beat = (struct client_call){
        .target = TARGET_COORDINATOR,
        .topic = m->group,
        .request = &wire_heartbeat_request,
        .body = &m->beat_body,
        .max_version = -1,
        .deadline_ms = m->heard_ms + m->session_timeout_ms,
        .judge = judge_beat,
        .cb = on_beat,
    };
    client_call(m->c, &m->beat);
}

void beat_start(struct member *m)
{
    m->heard_ms = loop_now_ms(m->loop);
    beat_later(m);
}

void beat_stop(struct member *m)
{
    timer_clear(m->loop, &m->beat_timer);
    client_cancel(m->c, &m->beat);
}
