/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commits in a row: one OffsetCommit at a time, with all that waited for the one before (rule M3), each in
 * the generation it was made in (M2). On the loop's thread.
 */
#include <errno.h>

#include "lib/client/member_int.h"

enum {
    COMMIT_TIMEOUT_MS = 60000,
    COMMIT_MAX = 10000, /* positions in one request */
};

bool commit_is_idle(const struct member *m)
{
    return TAILQ_EMPTY(&m->waiting) && TAILQ_EMPTY(&m->sent);
}

void member_commit(struct member *m, struct member_commit *mc)
{
    KCHECK(m->state == MEMBER_OWNING || m->state == MEMBER_RELEASING || m->state == MEMBER_OVER);
    KCHECK(mc->position.offset >= 0);
    TAILQ_INSERT_TAIL(&m->waiting, mc, entry);
    if (TAILQ_EMPTY(&m->sent))
        loop_defer(m->loop, &m->commit_turn);
}

/* Takes all out of the list first: a cb may commit again, or free the member. */
static void commits_end(struct member_commits *list, int rc, enum kerr err)
{
    struct member_commits over = TAILQ_HEAD_INITIALIZER(over);
    struct member_commit *mc;
    TAILQ_CONCAT(&over, list, entry);
    while ((mc = TAILQ_FIRST(&over)) != NULL) {
        TAILQ_REMOVE(&over, mc, entry);
        mc->position.err = err;
        mc->cb(mc, rc, err);
    }
}

static void commit_react(struct member *m, int rc, enum kerr err)
{
    bool has_parts = m->state == MEMBER_OWNING || m->state == MEMBER_RELEASING;
    enum member_reaction r = member_react(rc, err);
    if (has_parts && (r == REACT_LOST || r == REACT_FORGOTTEN))
        member_lose(m, r);
    else if (has_parts && err == KERR_FENCED_INSTANCE_ID)
        member_end(m, rc, err);
    else if (m->state == MEMBER_OWNING && r == REACT_REJOIN)
        member_revoke(m, false);
    else /* other errors are the owner's to judge */
        member_released_check(m);
}

static void on_committed(struct positions_commit *pc, int rc, enum kerr err)
{
    struct member *m = container_of(pc, struct member, commit);
    CLEANUP(freep) struct position *answers = pc->positions;
    struct member_commits over = TAILQ_HEAD_INITIALIZER(over);
    struct member_commit *mc;
    TAILQ_CONCAT(&over, &m->sent, entry);
    pc->positions = NULL;
    for (size_t i = 0; (mc = TAILQ_FIRST(&over)) != NULL; i++) {
        KINVARIANT("M3", i < pc->n && answers[i].offset == mc->position.offset);
        enum kerr own = answers[i].err;
        TAILQ_REMOVE(&over, mc, entry);
        mc->position.err = own;
        mc->cb(mc, own != KERR_NONE ? -kerr_errno(own) : err == KERR_NONE ? rc : 0, own);
    }
    if (!TAILQ_EMPTY(&m->waiting))
        loop_defer(m->loop, &m->commit_turn);
    commit_react(m, rc, err);
}

static size_t commits_move(struct member_commits *from, struct member_commits *to, size_t max)
{
    struct member_commit *mc;
    size_t n = 0;
    for (; n < max && (mc = TAILQ_FIRST(from)) != NULL; n++) {
        TAILQ_REMOVE(from, mc, entry);
        TAILQ_INSERT_TAIL(to, mc, entry);
    }
    return n;
}

static void commit_send(struct member *m)
{
    size_t n = commits_move(&m->waiting, &m->sent, COMMIT_MAX), i = 0;
    struct position *positions = xcalloc(n, sizeof *positions);
    const struct member_commit *mc;
    TAILQ_FOREACH (mc, &m->sent, entry)
        positions[i++] = mc->position;
    m->commit = (struct positions_commit){
        .group = m->group,
        .member_id = m->id,
        .generation = m->generation,
        .instance_id = m->instance_id,
        .positions = positions,
        .n = n,
        .deadline_ms = member_deadline(m, COMMIT_TIMEOUT_MS),
        .cb = on_committed,
    };
    positions_commit(m->c, &m->commit);
}

void commit_on_turn(struct deferred *d)
{
    struct member *m = container_of(d, struct member, commit_turn);
    if (!TAILQ_EMPTY(&m->sent) || TAILQ_EMPTY(&m->waiting))
        return;
    if (m->generation >= 0) {
        commit_send(m);
        return;
    }
    commits_end(&m->waiting, -kerr_errno(KERR_ILLEGAL_GENERATION), KERR_ILLEGAL_GENERATION);
    member_released_check(m);
}

void commit_cancel_all(struct member *m)
{
    positions_commit_cancel(&m->commit);
    free(m->commit.positions);
    m->commit.positions = NULL;
    loop_defer_cancel(m->loop, &m->commit_turn);
    commits_end(&m->sent, -ECANCELED, KERR_NONE);
    commits_end(&m->waiting, -ECANCELED, KERR_NONE);
}
