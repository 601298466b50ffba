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
    LOOK_AGAIN_MS = 500, /* for a topic that is gone */
};

void fetch_stop(struct run_part *p)
{
    position_find_cancel(&p->find);
    positions_fetch_cancel(&p->ask);
    timer_clear(p->r->s->loop, &p->again);
    if (p->looking)
        client_refresh_cancel(p->r->s->client, &p->look);
    p->looking = false;
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

static void go_on_at(struct run_part *p, int64_t offset, int32_t epoch)
{
    records_done(&p->records);
    records_init(&p->records, offset, epoch);
    p->dry = true;
    p->end = -1; /* if there was one, it was told before the log changed */
    p->finds = FIND_END;
}

/* The log lost its end (W5): who comes next begins there, too. */
static void take_end(struct run_part *p, int64_t end, int32_t epoch)
{
    if (p->records.next > end) {
        part_complain(p, "the log lost its end: offsets %lld to %lld are gone; going on at %lld", (long long)end,
                      (long long)p->records.next - 1, (long long)end);
        p->committed = -1;
    }
    go_on_at(p, end, epoch);
}

/* It is not in the log: the first record that is comes next. */
static void take_start(struct run_part *p, int64_t start)
{
    int64_t wanted = p->records.next;

    if (start <= wanted) {
        p->finds = FIND_LOG_END;
        return;
    }
    part_complain(p, "offsets %lld to %lld are gone from the log; going on after them", (long long)wanted,
                  (long long)start - 1);
    go_on_at(p, start, -1);
}

/* ---- a topic made anew (W4) ---- */
static void on_asked(struct positions_fetch *f, int rc, enum kerr err, const struct position *positions, size_t n)
{
    struct run_part *p = container_of(f, struct run_part, ask);

    if (rc != 0) {
        if (failure_passes(p, rc, err))
            fetch_find(p);
        return;
    }
    p->is_unreachable = false;
    p->committed = n == 1 ? positions[0].offset : -1;
    go_on_at(p, MAX(p->committed, 0), n == 1 && p->committed >= 0 ? positions[0].leader_epoch : -1);
    part_complain(p, "the topic is another one now; beginning at %lld", (long long)p->records.next);
    fetch_find(p);
}

static void ask_position(struct run_part *p)
{
    struct session *s = p->r->s;

    p->asked = (struct position){ .topic = p->topic, .partition = p->partition };
    p->ask = (struct positions_fetch){ .group = p->r->set.group,
                                       .wanted = &p->asked,
                                       .n_wanted = 1,
                                       .deadline_ms = loop_now_ms(s->loop) + TIMEOUT_MS,
                                       .cb = on_asked };
    positions_fetch(s->client, &p->ask);
}

static void on_topic(struct client_refresh *look, int rc)
{
    struct run_part *p = container_of(look, struct run_part, look);
    const struct client_topic *t = rc == 0 ? client_topic(p->r->s->client, p->topic) : NULL;

    p->looking = false;
    if (rc != 0 && rc != -ENOENT) {
        if (failure_passes(p, rc, KERR_NONE))
            fetch_find(p);
        return;
    }
    if (t != NULL && !uuid_eq(&t->id, &p->topic_id)) {
        p->is_missing = false;
        p->topic_id = t->id;
        p->finds = FIND_POSITION;
        fetch_find(p);
        return;
    }
    if (!p->is_missing)
        part_complain(p, "the topic is gone%s", p->r->set.follow ? "; waiting for it" : "");
    p->is_missing = true;
    if (p->r->set.follow)
        timer_set(p->r->s->loop, &p->again, loop_now_ms(p->r->s->loop) + LOOK_AGAIN_MS);
    else
        part_fail(p, CLI_FAILED);
}

static void look_for_topic(struct run_part *p)
{
    struct session *s = p->r->s;

    p->looking = true;
    p->look = (struct client_refresh){ .topic = p->topic,
                                       .deadline_ms = loop_now_ms(s->loop) + TIMEOUT_MS,
                                       .cb = on_topic };
    client_refresh(s->client, &p->look);
}

static void on_again(struct timer *t)
{
    fetch_find(container_of(t, struct run_part, again));
}

void fetch_init(struct run_part *p)
{
    p->again.cb = on_again;
}

/* With an id, that is all that "no such topic" can mean. */
static bool is_gone(const struct run_part *p, int rc)
{
    return rc == -ENOENT && !uuid_is_zero(&p->topic_id);
}

static void on_found(struct position_find *f, int rc, enum kerr err, int64_t offset)
{
    struct run_part *p = container_of(f, struct run_part, find);

    if (rc != 0 && is_gone(p, rc)) {
        p->finds = FIND_TOPIC;
        fetch_find(p);
        return;
    }
    if (rc != 0) {
        if (failure_passes(p, rc, err))
            find_at(p, f->at);
        return;
    }
    p->is_unreachable = false;
    if (p->finds == FIND_START) {
        take_start(p, offset);
    } else if (p->finds == FIND_LOG_END) {
        take_end(p, MIN(offset, p->records.next), -1);
    } else if (p->finds == FIND_END) {
        p->end = offset;
    } else if (offset < 0) { /* no record is that young yet */
        find_at(p, POSITION_END);
        return;
    } else {
        go_on_at(p, offset, -1);
    }
    fetch_find(p);
}

static void find_at(struct run_part *p, int64_t at)
{
    struct session *s = p->r->s;

    p->find.topic = p->topic;
    p->find.topic_id = p->topic_id;
    p->find.partition = p->partition;
    p->find.at = at;
    p->find.deadline_ms = loop_now_ms(s->loop) + TIMEOUT_MS;
    p->find.cb = on_found;
    position_find(s->client, &p->find);
}

void fetch_find(struct run_part *p)
{
    if (p->finds == FIND_TOPIC) {
        look_for_topic(p);
    } else if (p->finds == FIND_POSITION) {
        ask_position(p);
    } else if (p->finds == FIND_START) {
        find_at(p, POSITION_START);
    } else if (p->finds == FIND_LOG_END) {
        find_at(p, POSITION_END);
    } else if (p->records.next < 0) {
        p->finds = FIND_FROM;
        find_at(p, p->r->set.from);
    } else if (!p->r->set.follow && p->end < 0) {
        p->finds = FIND_END;
        find_at(p, POSITION_END);
    } else {
        if (p->end >= 0 && p->records.next > p->end)
            p->end = -1; /* the log is shorter than what was read of it: a fetch tells where to go on */
        part_go_on(p);
    }
}

/* ---- fetching ---- */
static void part_lost_end(struct run_part *p, int64_t end, int32_t epoch)
{
    take_end(p, MIN(end, p->records.next), epoch);
    part_refind(p);
}

static void on_fetched(struct client_fetch *f, int rc, const struct client_fetched *ret)
{
    struct run_part *p = container_of(f, struct run_part, fetch);

    p->fetching = false;
    if ((rc != 0 || ret->err != KERR_NONE || ret->diverged) && p->state != PART_FETCHING)
        return; /* once there is nothing else to do it is asked again */
    if (rc == 0 && ret->err == KERR_OFFSET_OUT_OF_RANGE) {
        part_seek(p);
        return;
    }
    if (is_gone(p, rc)) {
        part_anew(p);
        return;
    }
    if (rc == 0 && ret->diverged) {
        part_lost_end(p, ret->diverging_end, ret->diverging_epoch);
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
        .topic_id = p->topic_id,
        .partition = p->partition,
        .offset = p->records.next,
        .has_last_epoch = p->records.epoch >= 0,
        .last_epoch = p->records.epoch,
        .max_bytes = FETCH_BYTES,
        .max_wait_ms = FETCH_WAIT_MS,
        .deadline_ms = loop_now_ms(s->loop) + FETCH_WAIT_MS + TIMEOUT_MS,
        .cb = on_fetched,
    };
    client_fetch(s->client, &p->fetch);
}
