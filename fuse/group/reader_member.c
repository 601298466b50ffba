/* SPDX-License-Identifier: Apache-2.0 */
/*
 * as/G/all: one open file is one member of the group. Partitions come and go with rebalances: before they are
 * given back, the line that the reader has in hand is waited for a while, so that it is not handed out twice;
 * what was read ahead of it is forgotten. Loop's thread.
 */
#include <errno.h>
#include <stdlib.h>

#include "fuse/base/missed.h"
#include "fuse/group/reader.h"
#include "lib/base/check.h"

/* How long others wait for the line that is being worked on. Well below the session time-out. */
#define RELEASE_WAIT_MS 10000
#define HEARTBEAT_MS    3000

static void give_back(struct reader *g)
{
    g->releasing = g->dealt = g->assigned = false;
    timer_clear(g->mount->loop, &g->release_timer);
    parts_gone(g);
    member_released(g->member);
}

void reader_try_release(struct reader *g)
{
    if (!g->releasing)
        return;
    bool idle = g->dealt || g->user.closing || g->delivered <= g->start || g->first == g->n_lines;
    if (idle && reader_is_committed(g))
        give_back(g);
}

static void on_release_timer(struct timer *t)
{
    struct reader *g = container_of(t, struct reader, release_timer);
    g->dealt = true;
    reader_try_release(g);
}

static void on_assigned(struct member *mb, const struct position *parts, size_t n)
{
    struct reader *g = member_user(mb);
    g->assigned = true;
    for (size_t i = 0; i < n; i++) {
        if (parts[i].err == KERR_NONE)
            part_new(g, parts[i].partition, &parts[i]);
        else
            g->error = group_errno(-kerr_errno(parts[i].err), parts[i].err);
    }
    reader_go(g);
}

static void on_revoked(struct member *mb, bool lost)
{
    struct reader *g = member_user(mb);
    if (lost) {
        give_back(g);
        return;
    }
    g->releasing = true;
    g->dealt = !TAILQ_EMPTY(&g->ops); /* who waits for more has dealt with all before */
    timer_set(g->mount->loop, &g->release_timer, loop_now_ms(g->mount->loop) + RELEASE_WAIT_MS);
    reader_try_release(g);
}

static void on_ended(struct member *mb, int rc, enum kerr err)
{
    struct reader *g = member_user(mb);
    g->member = NULL;
    g->assigned = g->releasing = false;
    parts_gone(g);
    g->busy = true; /* commits that end now end inside */
    member_free(mb);
    g->busy = false;
    parts_reap(g);
    if (rc != 0)
        g->error = group_errno(rc, err);
    g->user.closing |= rc != 0;
    reader_go(g);
}

void reader_join(struct reader *g)
{
    static const struct member_ops ops = { .assigned = on_assigned,
                                           .revoked = on_revoked,
                                           .ended = on_ended };
    const char *topic = g->node->topic->name;
    int32_t session_ms = g->mount->opt->session_timeout_ms;
    struct member_config cfg = { .group = g->node->view.group,
                                 .topics = &topic,
                                 .n_topics = 1,
                                 .session_timeout_ms = session_ms,
                                 .heartbeat_ms = MIN(HEARTBEAT_MS, session_ms / 3) };
    g->release_timer.cb = on_release_timer;
    g->member = member_new(g->mount->writer, &cfg, &ops, g);
    member_join(g->member);
}

void reader_leave(struct reader *g)
{
    if (g->leaving)
        return;
    g->leaving = true;
    if (g->releasing)
        give_back(g);
    else
        parts_gone(g); /* what is read on from now on can no longer be committed */
    member_close(g->member, mount_deadline_ms(g->mount));
}

void readers_stop(struct mount *m)
{
    struct group_user *u, *next;
    group_waits_cancel(m);
    for (u = LIST_FIRST(&m->group_users); u != NULL; u = next) {
        next = LIST_NEXT(u, link);
        struct reader *g = container_of(u, struct reader, user);
        struct member *mb = g->member;
        if (mb == NULL)
            continue;
        g->member = NULL;
        g->busy = true;
        member_free(mb);
        g->busy = false;
        reader_go(g);
    }
}
