/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a partition's records come from: where to begin and where to end, then one fetch at a time, the next
 * one while COMMAND works on the last. A broker that cannot be reached is waited for. One thread.
 */
#include <errno.h>
#include <string.h>

#include "lib/base/check.h"
#include "src/run.h"

enum {
    FETCH_BYTES = 1 << 20,
    FETCH_WAIT_MS = 500,
    TIMEOUT_MS = 30000,
};

void fetch_stop(struct run_part *p)
{
    position_find_cancel(&p->find);
    if (p->fetching)
        client_fetch_cancel(p->r->s->client, &p->fetch);
    p->fetching = false;
}

/* True when it is to be tried again; else the run has failed. */
static bool failure_passes(struct run_part *p, int rc, enum kerr err)
{
    const char *why = err != KERR_NONE ? kerr_text(err) : rc == -ETIMEDOUT ? "no answer" : strerror(-rc);

    if (rc == -ETIMEDOUT || kerr_retriable(err)) {
        if (!p->is_unreachable)
            part_complain(p, "cannot be read at the moment: %s; trying on", why);
        p->is_unreachable = true;
        return true;
    }
    part_complain(p, "cannot be read: %s", why);
    part_fail(p, CLI_FAILED);
    return false;
}

/* ---- where to begin and end ---- */
static void find_at(struct run_part *p, int64_t at);

/* It is not in the log: the first record that is comes next. */
static void take_start(struct run_part *p, int64_t start)
{
    int64_t wanted = p->records.next;

    if (start > wanted)
        part_complain(p, "offsets %lld to %lld are gone from the log; going on after them", (long long)wanted,
                      (long long)start - 1);
    else
        part_complain(p, "offset %lld is beyond the end of the log; beginning at its start, %lld",
                      (long long)wanted, (long long)start);
    records_done(&p->records);
    records_init(&p->records, start);
    p->end = -1; /* if there was one, it was told before the log changed */
    p->finds = FIND_END;
}

static void on_found(struct position_find *f, int rc, enum kerr err, int64_t offset)
{
    struct run_part *p = container_of(f, struct run_part, find);

    if (rc != 0) {
        if (failure_passes(p, rc, err))
            find_at(p, f->at);
        return;
    }
    p->is_unreachable = false;
    if (p->finds == FIND_START) {
        take_start(p, offset);
    } else if (p->finds == FIND_END) {
        p->end = offset;
    } else if (offset < 0) { /* no record is that young yet */
        find_at(p, POSITION_END);
        return;
    } else {
        records_done(&p->records);
        records_init(&p->records, offset);
        p->finds = FIND_END;
    }
    fetch_find(p);
}

static void find_at(struct run_part *p, int64_t at)
{
    struct session *s = p->r->s;

    p->find.topic = p->topic;
    p->find.partition = p->partition;
    p->find.at = at;
    p->find.deadline_ms = loop_now_ms(s->loop) + TIMEOUT_MS;
    p->find.cb = on_found;
    position_find(s->client, &p->find);
}

void fetch_find(struct run_part *p)
{
    if (p->finds == FIND_START) {
        find_at(p, POSITION_START);
    } else if (p->records.next < 0) {
        p->finds = FIND_FROM;
        find_at(p, p->r->set.from);
    } else if (!p->r->set.follow && p->end < 0) {
        p->finds = FIND_END;
        find_at(p, POSITION_END);
    } else if (p->end >= 0 && p->records.next > p->end) {
        p->finds = FIND_START; /* the log is shorter than what was read of it */
        fetch_find(p);
    } else {
        part_go_on(p);
    }
}

/* ---- fetching ---- */
static void on_fetched(struct client_fetch *f, int rc, const struct client_fetched *ret)
{
    struct run_part *p = container_of(f, struct run_part, fetch);

    p->fetching = false;
    if ((rc != 0 || ret->err != KERR_NONE) && p->state != PART_FETCHING)
        return; /* once there is nothing else to do it is asked again */
    if (rc == 0 && ret->err == KERR_OFFSET_OUT_OF_RANGE) {
        part_seek(p);
        return;
    }
    if (rc != 0 || ret->err != KERR_NONE) {
        if (failure_passes(p, rc, rc == 0 ? ret->err : KERR_NONE))
            fetch_more(p);
        return;
    }
    p->is_unreachable = false;
    records_take(&p->records, ret);
    p->dry = false;
    if (p->state == PART_FETCHING)
        part_go_on(p);
}

void fetch_more(struct run_part *p)
{
    struct session *s = p->r->s;
    bool wants = p->state == PART_FETCHING || p->state == PART_READY || p->state == PART_WORKING ||
                 p->state == PART_PAUSING || p->state == PART_COMMITTING;

    if (!wants || p->fetching || !p->dry || !run_goes_on(p->r) || (p->end >= 0 && p->records.next >= p->end))
        return;
    p->fetching = true;
    p->fetch = (struct client_fetch){
        .topic = p->topic,
        .partition = p->partition,
        .offset = p->records.next,
        .max_bytes = FETCH_BYTES,
        .max_wait_ms = FETCH_WAIT_MS,
        .deadline_ms = loop_now_ms(s->loop) + FETCH_WAIT_MS + TIMEOUT_MS,
        .cb = on_fetched,
    };
    client_fetch(s->client, &p->fetch);
}
