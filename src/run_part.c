/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One partition that `klog run` works on, from one commit to the next: find the position, fetch, hand batches to COMMAND,
 * commit what it has done, try again or bury what it could not do. States and their moves stand in the table below; the
 * rules are run.h's. A partition that is given back while COMMAND has its records is busy until that is over. One thread.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "src/run.h"

enum { BACKOFF_MAX_MS = 60000, BACKOFF_STEPS = 20 };

/*
 *   away -> finding -> fetching -> ready -> working -> committing -> fetching | ready | done
 *
 * - working -> pausing -> ready: COMMAND failed, and may try again
 * - working -> burying -> committing: it failed too often
 * - finding, fetching -> committing: there is a position to store without any record before it
 * - fetching, committing -> finding: the position is not in the log, or the topic is another one
 * - any -> away: given back, or failed; while it is busy not before that is over (W3)
 */
#define B(state) (1u << PART_##state)
static const uint16_t part_next[] = {
    [PART_AWAY] = B(FINDING),
    [PART_FINDING] = B(FETCHING) | B(READY) | B(COMMITTING) | B(DONE) | B(AWAY),
    [PART_FETCHING] = B(READY) | B(COMMITTING) | B(DONE) | B(FINDING) | B(AWAY),
    [PART_READY] = B(WORKING) | B(AWAY),
    [PART_WORKING] = B(COMMITTING) | B(PAUSING) | B(BURYING) | B(AWAY),
    [PART_PAUSING] = B(READY) | B(AWAY),
    [PART_BURYING] = B(COMMITTING) | B(AWAY),
    [PART_COMMITTING] = B(FINDING) | B(FETCHING) | B(READY) | B(COMMITTING) | B(DONE) | B(AWAY),
    [PART_DONE] = B(AWAY),
};
#undef B

static void part_move(struct run_part *p, enum part_state to)
{
    KCHECK(part_next[p->state] & (1u << to));
    if (p->state == PART_READY)
        TAILQ_REMOVE(&p->r->ready, p, ready);
    p->state = to;
    if (to == PART_READY)
        TAILQ_INSERT_TAIL(&p->r->ready, p, ready);
    run_stir(p->r);
}

bool part_is_busy(const struct run_part *p)
{
    return p->state == PART_WORKING || p->state == PART_BURYING || p->state == PART_COMMITTING;
}

void part_complain(const struct run_part *p, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    complain(p->r->args, "%s partition %d: %s", p->topic, p->partition, text);
}

/* ---- coming and going ---- */
static void part_on_pause(struct timer *t)
{
    struct run_part *p = container_of(t, struct run_part, pause);
    part_move(p, PART_READY);
}

void part_init(struct run_part *p, struct run *r, const char *topic, int32_t partition)
{
    p->r = r;
    p->topic = xstrdup(topic);
    p->partition = partition;
    p->committed = p->end = -1;
    p->pause.cb = part_on_pause;
    batch_init(&p->batch);
    records_init(&p->records, 0, -1);
    fetch_init(p);
}

void part_free(struct run_part *p)
{
    KCHECK(p->state == PART_AWAY);
    batch_done(&p->batch);
    records_done(&p->records);
    free(p->topic);
    free(p);
}

static void part_go_away(struct run_part *p)
{
    fetch_stop(p);
    timer_clear(p->r->s->loop, &p->pause);
    batch_clear(&p->batch);
    part_move(p, PART_AWAY);
}

void part_take(struct run_part *p, const struct position *from)
{
    KCHECK(p->state == PART_AWAY);
    part_move(p, PART_FINDING);
    p->topic_id = from->topic_id;
    p->committed = from->offset;
    p->end = -1;
    p->finds = FIND_FROM;
    records_done(&p->records);
    records_init(&p->records, from->offset, from->offset < 0 ? -1 : from->leader_epoch);
    p->dry = true;
    fetch_find(p);
}

void part_give_back(struct run_part *p)
{
    if (p->state != PART_AWAY && !part_is_busy(p))
        part_go_away(p);
}

void part_fail(struct run_part *p, int status)
{
    run_stop(p->r, status); /* which gives it back, if it is not busy */
    if (p->state != PART_AWAY)
        part_go_away(p);
}

/* ---- what comes next ---- */
/* A position without a record before it: of a partition that the group begins with, so that it stays where it
 * was found; and at the end, for what is there but not to be seen. */
static bool has_bare_position(const struct run_part *p, bool at_end)
{
    return p->committed < 0 || (at_end && p->records.next > p->committed);
}

void part_go_on(struct run_part *p)
{
    if (!run_goes_on(p->r)) {
        part_go_away(p);
        return;
    }
    if (batch_gather(p) != 0) {
        part_complain(p, "the records at offset %lld are damaged; they were left alone",
                      (long long)p->records.next);
        part_fail(p, CLI_FAILED);
        return;
    }
    bool at_end = p->end >= 0 && p->records.next >= p->end;
    if (p->batch.n > 0) {
        part_move(p, PART_READY);
    } else if (has_bare_position(p, at_end)) {
        p->batch.next = p->records.next;
        p->batch.epoch = p->records.epoch;
        part_commit(p);
    } else if (at_end) {
        part_move(p, PART_DONE);
    } else if (p->state != PART_FETCHING) {
        part_move(p, PART_FETCHING);
    }
    fetch_more(p);
}

void part_refind(struct run_part *p)
{
    part_move(p, PART_FINDING);
    fetch_find(p);
}

void part_seek(struct run_part *p)
{
    p->finds = FIND_START;
    part_refind(p);
}

void part_anew(struct run_part *p)
{
    batch_clear(&p->batch);
    part_move(p, PART_FINDING);
    p->finds = FIND_TOPIC;
    fetch_find(p);
}

/* ---- working ---- */
static void part_on_refused(struct run_part *p)
{
    struct run *r = p->r;
    struct run_batch *b = &p->batch;
    char text[64];

    r->n_refusals++;
    b->attempts++;
    part_complain(p, "%s: %s at offsets %lld to %lld (attempt %lld of %lld)", r->set.command[0],
                  child_status_text(b->last_status, text, sizeof text), (long long)b->first,
                  (long long)b->last, (long long)b->attempts, (long long)r->set.retries + 1);
    if (b->attempts > r->set.retries && r->set.dead_letters != NULL) {
        part_move(p, PART_BURYING);
        batch_bury(p);
    } else if (r->releasing) { /* whoever is next will try */
        part_go_away(p);
    } else if (b->attempts > r->set.retries || r->stopping) {
        part_fail(p, RUN_REFUSED);
    } else {
        int64_t wait_ms = r->set.backoff_ms << MIN(b->attempts - 1, BACKOFF_STEPS);
        part_move(p, PART_PAUSING);
        timer_set(r->s->loop, &p->pause, loop_now_ms(r->s->loop) + MIN(wait_ms, BACKOFF_MAX_MS));
    }
}

static void part_on_child_end(struct child *c, int status)
{
    struct run_part *p = container_of(c, struct run_part, child);

    p->r->n_working--;
    p->batch.last_status = status;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        part_commit(p);
    else
        part_on_refused(p);
}

void part_work(struct run_part *p)
{
    if (p->batch.attempts == 0 && batch_gather(p) != 0) { /* what has come meanwhile */
        part_complain(p, "the records at offset %lld are damaged; they were left alone",
                      (long long)p->records.next);
        part_fail(p, CLI_FAILED);
        return;
    }
    part_move(p, PART_WORKING);
    p->r->n_working++;
    p->child.ended = part_on_child_end;
    batch_give(p);
    if (p->state == PART_WORKING)
        fetch_more(p);
}

/* ---- committing ---- */
static bool says_lost(int rc, enum kerr err)
{
    return rc == -ECANCELED || err == KERR_ILLEGAL_GENERATION || err == KERR_UNKNOWN_MEMBER_ID ||
           err == KERR_REBALANCE_IN_PROGRESS || err == KERR_FENCED_INSTANCE_ID;
}

static void part_on_committed(struct member_commit *mc, int rc, enum kerr err)
{
    struct run_part *p = container_of(mc, struct run_part, commit);
    struct run *r = p->r;

    if (rc == 0) {
        KINVARIANT("W2", mc->position.offset == p->batch.next);
        p->committed = p->batch.next;
        r->n_records += p->batch.n;
        batch_clear(&p->batch);
        part_go_on(p);
    } else if (says_lost(rc, err)) {
        part_complain(
            p, "lost to another member of the group; what was done from offset %lld on may be done again",
            (long long)MAX(p->committed, 0));
        part_go_away(p);
    } else if (err == KERR_UNKNOWN_TOPIC_ID || err == KERR_UNKNOWN_TOPIC_OR_PARTITION) {
        part_complain(p, "the topic was deleted; what was done up to offset %lld is not committed in any other",
                      (long long)p->batch.next);
        r->n_records += p->batch.n;
        if (run_goes_on(r))
            part_anew(p);
        else
            part_go_away(p);
    } else if (rc == -ETIMEDOUT && !r->stopping) {
        part_complain(p, "offset %lld could not be committed yet; trying on", (long long)p->batch.next);
        part_commit(p);
    } else {
        part_complain(p, "offset %lld could not be committed: %s", (long long)p->batch.next,
                      err != KERR_NONE ? kerr_text(err) : strerror(-rc));
        part_fail(p, CLI_FAILED);
    }
}

void part_commit(struct run_part *p)
{
    part_move(p, PART_COMMITTING);
    p->commit.position = (struct position){
        .topic = p->topic,
        .topic_id = p->topic_id,
        .partition = p->partition,
        .offset = p->batch.next,
        .leader_epoch = p->batch.epoch,
    };
    p->commit.cb = part_on_committed;
    if (p->r->ended)
        part_on_committed(&p->commit, -ECANCELED, KERR_NONE);
    else
        member_commit(p->r->m, &p->commit);
}
