/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One followed partition: what follows from each answer about it, and where it waits meanwhile. On the shard's thread, but
 * for its work, which is on a worker. While that runs nothing here touches what the work uses.
 */
#include <string.h>

#include "daemon/config/broker_config.h"
#include "daemon/follow/follow_int.h"
#include "daemon/replica/throttle.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

enum {
    REST_FIRST_MS = 10, /* doubled up to replica.fetch.backoff.ms: leaders are told of their epoch a moment later, too */
    LOOK_MS = 30000,
    BY_OFFSET = 1, /* KlogFindText */
};

/* - ready -> asked -> what the answer says
 * - asked -> flushing (records came), working (cut, begin anew, delete), looking (before beginning anew), resting (no, or
 *   nothing came), ready (nothing new)
 * - flushing, working, looking, resting -> ready, or resting
 * - not working -> ready: another leader or epoch */
#define B(state) (1u << PART_##state)
static const uint8_t part_next[PART_STATES] = {
    [PART_READY] = B(READY) | B(ASKED) | B(FLUSHING) | B(RESTING),
    [PART_ASKED] = B(READY) | B(FLUSHING) | B(WORKING) | B(LOOKING) | B(RESTING),
    [PART_FLUSHING] = B(READY),
    [PART_WORKING] = B(READY) | B(RESTING),
    [PART_LOOKING] = B(READY) | B(RESTING),
    [PART_RESTING] = B(READY),
};
#undef B

static void forget_anew(struct part *p)
{
    p->anew = p->text_position = -1;
}

/* Out of where it is. */
static void leave_state(struct part *p)
{
    switch (p->state) {
    case PART_READY:
        TAILQ_REMOVE(&p->fetcher->ready, p, link);
        break;
    case PART_ASKED:
        p->lane->asked[p->slot] = NULL;
        p->lane = NULL;
        break;
    case PART_FLUSHING:
        partition_unwatch(p->pt, &p->watcher);
        loop_cancel(p->shard->loop, &p->flushed);
        if (p->lane != NULL) {
            p->lane->n_flushing--;
            fetcher_stir(p->lane->fetcher);
        }
        p->lane = NULL;
        break;
    case PART_LOOKING:
        client_cancel(p->fetcher->client, &p->look);
        break;
    case PART_RESTING:
        timer_clear(p->shard->loop, &p->rest);
        break;
    case PART_WORKING:
    case PART_STATES:
        break;
    }
}

static void part_move(struct part *p, enum part_state to) /* the only writer of p->state, but for its birth */
{
    KCHECK(part_next[p->state] & (1u << to));
    leave_state(p);
    p->state = to;
}

static void part_ready(struct part *p)
{
    part_move(p, PART_READY);
    TAILQ_INSERT_TAIL(&p->fetcher->ready, p, link);
    fetcher_stir(p->fetcher);
}

static void part_rest_for(struct part *p, int64_t ms)
{
    part_move(p, PART_RESTING);
    timer_set_in(p->shard->loop, &p->rest, ms);
}

static void part_rest(struct part *p)
{
    int64_t most = p->shard->follow->deps.config->replica_fetch_backoff_ms;
    int64_t ms = MIN(most, (int64_t)REST_FIRST_MS << MIN(p->failures, 20));

    p->failures++;
    part_rest_for(p, ms);
}

/* Whoever removes a partition waits for all references to it. */
static void on_rested(struct timer *t)
{
    struct part *p = container_of(t, struct part, rest);

    if (partition_copy_is_over(p->pt))
        part_leave(p);
    else
        part_ready(p);
}

/* What was appended waits for its flush; la: the lane that waits with it, or NULL. */
static bool part_wait_for_flush(struct part *p, int64_t leo, struct lane *la)
{
    if (!partition_copy_watch(p->pt, &p->watcher, leo))
        return false;
    part_move(p, PART_FLUSHING);
    p->lane = la;
    if (la != NULL)
        la->n_flushing++;
    return true;
}

static void on_flushed(struct task *t)
{
    part_ready(container_of(t, struct part, flushed));
}

/* ---- asking ---- */
bool part_ask(struct part *p, struct lane *la, int32_t slot)
{
    if (!partition_copy_point(p->pt, &p->at) || p->at.leader != p->fetcher->leader) {
        part_rest(p); /* news of another role or leader is on its way */
        return false;
    }
    if (!p->at.flushed && part_wait_for_flush(p, p->at.leo, NULL)) {
        partition_flush_soon(p->pt);
        return false;
    }
    struct throttle *throttle = p->shard->follow->deps.throttle;
    int64_t now_ms = loop_now_ms(p->shard->loop);
    if (p->at.throttled && throttle_room(throttle, now_ms) == 0) {
        part_rest_for(p, throttle_wait_ms(throttle, now_ms));
        return false;
    }
    if (p->anew >= 0 && p->anew <= p->at.leo)
        forget_anew(p);
    part_move(p, PART_ASKED);
    p->lane = la;
    p->slot = slot;
    return true;
}

void part_failed(struct part *p, const char *why)
{
    if (p->failures == 0)
        log_debug("%s-%d: fetching from broker %d: %s", p->pt->topic, p->pt->id, p->fetcher->leader, why);
    part_rest(p);
}

/* ---- work ---- */
static void work_run(struct job *j)
{
    struct part *p = container_of(j, struct part, job);

    switch (p->work) {
    case WORK_TRUNCATE:
        p->result = partition_copy_truncate(p->pt, &p->at, p->diverging_epoch, p->offset);
        break;
    case WORK_RESTART:
        p->result = partition_copy_restart(p->pt, &p->at, p->offset, p->text_position, p->batches, p->leader_hw);
        break;
    case WORK_DELETE:
        p->result = partition_copy_delete_before(p->pt, &p->at, p->offset);
        break;
    }
}

static void part_free(struct part *p)
{
    partition_unref(p->pt);
    free(p);
}

static void part_settle(struct part *p, enum copy_result result)
{
    if (result == COPY_DONE || result == COPY_STALE) {
        p->failures = 0;
        part_ready(p);
    } else {
        part_rest(p);
    }
}

static void work_done(struct job *j)
{
    struct part *p = container_of(j, struct part, job);

    rcbuf_unref(p->frame);
    p->frame = NULL;
    if (p->fetcher == NULL) {
        part_free(p);
        return;
    }
    if (p->work == WORK_RESTART)
        forget_anew(p);
    part_settle(p, p->result);
}

static void part_work(struct part *p, enum part_work work, int64_t offset)
{
    part_move(p, PART_WORKING);
    p->work = work;
    p->offset = offset;
    p->job = (struct job){ .run = work_run, .done = work_done, .loop = p->shard->loop };
    workers_submit(p->shard->follow->workers, &p->job);
}

/* ---- beginning anew ---- */
/* Positions in the plain view are the same at every replica, so the leader is asked for that of its start. */
static void on_look_answer(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    struct part *p = call->user;
    const struct klog_find_text_response *r = response;

    (void)err;
    (void)version;
    if (rc < 0 || r->error_code != KERR_NONE || r->text_position < 0) {
        part_failed(p, rc < 0 ? strerror(-rc) : kerr_name((enum kerr)r->error_code));
        return;
    }
    p->text_position = r->text_position;
    part_ready(p);
}

static void part_look(struct part *p, int64_t start)
{
    part_move(p, PART_LOOKING);
    p->anew = start;
    p->look_body = (struct klog_find_text_request){
        .topic = kstr_of(p->pt->topic),
        .topic_id = p->pt->topic_id,
        .partition = p->pt->id,
        .current_leader_epoch = p->at.leader_epoch,
        .by = BY_OFFSET,
        .value = start,
    };
    p->look = (struct client_call){
        .target = TARGET_ANY,
        .request = &wire_klog_find_text_request,
        .body = &p->look_body,
        .max_version = -1,
        .deadline_ms = loop_now_ms(p->shard->loop) + LOOK_MS,
        .once = true,
        .cb = on_look_answer,
        .user = p,
    };
    client_call(p->fetcher->client, &p->look);
}

/* ---- the answer ---- */
static void part_out_of_range(struct part *p, const struct fetch_response_partitions *r)
{
    if (r->log_start_offset > p->at.leo) {
        part_look(p, r->log_start_offset);
        return;
    }
    if (p->failures == 0)
        log_warn("%s-%d: broker %d, which leads it, has no offset %lld; its log begins at %lld", p->pt->topic, p->pt->id,
                 p->fetcher->leader, (long long)p->at.leo, (long long)r->log_start_offset);
    part_rest(p);
}

static void part_append(struct part *p, const struct fetch_response_partitions *r, struct slice batches)
{
    struct lane *la = p->lane;
    enum copy_result result = partition_copy_append(p->pt, &p->at, batches, r->high_watermark);
    struct partition_copy now;

    if (result != COPY_DONE) {
        part_settle(p, result);
        return;
    }
    p->failures = 0;
    bool ok = partition_copy_point(p->pt, &now);
    if (ok && r->log_start_offset > now.start_offset && r->log_start_offset <= now.leo)
        part_work(p, WORK_DELETE, r->log_start_offset);
    else if (!ok || batches.n == 0 || !part_wait_for_flush(p, now.leo, la))
        part_ready(p);
}

static void part_take(struct part *p, const struct fetch_response_partitions *r, struct rcbuf *frame)
{
    struct slice batches = slice_of(r->records.p, r->records.n > 0 ? (size_t)r->records.n : 0);

    if (p->at.throttled)
        throttle_passed(p->shard->follow->deps.throttle, (int64_t)batches.n, loop_now_ms(p->shard->loop));

    if (r->diverging_epoch.end_offset >= 0) {
        p->diverging_epoch = r->diverging_epoch.epoch;
        part_work(p, WORK_TRUNCATE, r->diverging_epoch.end_offset);
    } else if (p->anew >= 0) {
        p->batches = batches;
        p->leader_hw = r->high_watermark;
        p->frame = rcbuf_ref(frame);
        part_work(p, WORK_RESTART, p->anew);
    } else {
        part_append(p, r, batches);
    }
}

void part_answered(struct part *p, const struct fetch_response_partitions *r, struct rcbuf *frame)
{
    enum kerr err = (enum kerr)r->error_code;

    if (err == KERR_NONE)
        part_take(p, r, frame);
    else if (err == KERR_OFFSET_OUT_OF_RANGE && p->anew < 0)
        part_out_of_range(p, r);
    else {
        forget_anew(p); /* the leader's start has moved on meanwhile, or somebody else leads */
        part_failed(p, kerr_name(err));
    }
}

/* ---- birth and end ---- */
struct part *part_new(struct shard *sh, struct partition *pt, struct fetcher *fe)
{
    struct part *p = xcalloc(1, sizeof *p);

    p->shard = sh;
    p->pt = partition_ref(pt);
    p->fetcher = fe;
    p->rest.cb = on_rested;
    p->flushed.cb = on_flushed;
    p->watcher = (struct watcher){ .loop = sh->loop, .task = &p->flushed, .what = WATCH_COPY };
    forget_anew(p);
    HASH_ADD(hh, sh->parts, pt, sizeof p->pt, p);
    fe->n_parts++;
    p->state = PART_READY;
    TAILQ_INSERT_TAIL(&fe->ready, p, link);
    fetcher_stir(fe);
    return p;
}

void part_follow(struct part *p, struct fetcher *fe)
{
    struct fetcher *before = p->fetcher;

    bool working = p->state == PART_WORKING; /* it goes on when that is done */

    leave_state(p);
    p->failures = 0;
    p->fetcher = fe;
    fe->n_parts++;
    if (!working) {
        forget_anew(p);
        p->state = PART_READY;
        TAILQ_INSERT_TAIL(&fe->ready, p, link);
        fetcher_stir(fe);
    }
    fetcher_leave(before);
}

void part_leave(struct part *p)
{
    struct fetcher *fe = p->fetcher;

    leave_state(p);
    HASH_DEL(p->shard->parts, p);
    p->fetcher = NULL;
    if (p->state != PART_WORKING)
        part_free(p);
    fetcher_leave(fe);
}
