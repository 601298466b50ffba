/* SPDX-License-Identifier: Apache-2.0 */
/* See partition_follow.h. Locks: change_mu, then mu; neither is held over a wait for the disk but change_mu, on a follower. */
#include "daemon/replica/partition_follow.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/replica/partition_int.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/world.h"
#include "lib/metrics/histogram.h"
#include "lib/record/iter.h"

enum { DECOMPRESSED_MAX_BYTES = 64 * 1024 * 1024 };

/* Is the copying of that replica, which is not in sync, to keep to a rate? list: of this side's throttled replicas. */
static bool is_throttled(const struct partition *pt, const char *list, int32_t follower)
{
    lock_assert_held(&pt->mu);
    return list[0] != '\0' && state_isr_index(&pt->replica.state, follower) < 0 &&
           topic_config_throttles(list, pt->id, pt->deps->me);
}

/* ---- a leader ---- */
void partition_follower_view(struct partition *pt, const struct partition_follower *who, int32_t leader_epoch,
                             struct partition_view *ret)
{
    partition_view(pt, ret);
    lock_take(&pt->mu);
    if (!pt->deleted || ret->err == KERR_NONE) /* else it says why it is being removed */
        ret->err = replica_fetch_check(&pt->replica, who->broker_id, who->broker_epoch, leader_epoch);
    ret->throttled = is_throttled(pt, pt->config->leader_throttled, who->broker_id);
    lock_release(&pt->mu);
}

int32_t partition_nearest(struct partition *pt, int64_t offset, const int32_t *brokers, int32_t n)
{
    int32_t nearest = -1;
    int64_t most = -1;

    lock_take(&pt->mu);
    const struct replica *r = &pt->replica;
    for (int32_t i = 0; i < n && replica_leads(r); i++) {
        int32_t at = state_replica_index(&r->state, brokers[i]);
        if (at < 0 || (r->isr_mask >> at & 1) == 0 || r->follower[at].leo < offset || r->follower[at].leo <= most)
            continue;
        most = r->follower[at].leo;
        nearest = brokers[i];
    }
    lock_release(&pt->mu);
    return nearest;
}

void partition_follower_fetched(struct partition *pt, const struct partition_follower *who, int32_t leader_epoch,
                                int64_t leo)
{
    int64_t now_ms = world_mono_ms(pt->deps->world);

    lock_take(&pt->mu);
    /* Between the check and now another epoch may have begun, in which this fetch shows nothing. */
    bool counts = replica_fetch_check(&pt->replica, who->broker_id, who->broker_epoch, leader_epoch) == KERR_NONE;
    bool again = counts && leo != pt->sound_at && replica_asks_again(&pt->replica, who->broker_id, leo);
    if (counts && replica_follower_fetched(&pt->replica, who->broker_id, who->broker_epoch, leo, now_ms))
        partition_wake_due(pt);
    lock_release(&pt->mu);
    if (again)
        partition_suspect(pt, leo);
}

/* ---- a follower ---- */
bool partition_follows(const struct partition *pt)
{
    return !pt->deleted && pt->log != NULL && replica_follows(&pt->replica);
}

/* What the leader is told with the next fetch is safe: but for `async` that is what was flushed (R5). */
static bool is_flushed(const struct partition *pt)
{
    return pt->config->flush_policy == FLUSH_ASYNC || pt->replica.fleo >= pt->replica.leo;
}

bool partition_copy_point(struct partition *pt, struct partition_copy *ret)
{
    struct plog_ends ends;

    lock_take(&pt->mu);
    bool ok = partition_follows(pt);
    if (ok) {
        plog_ends(pt->log, &ends);
        *ret = (struct partition_copy){
            .leader = pt->replica.state.leader,
            .leader_epoch = pt->replica.state.leader_epoch,
            .leo = pt->replica.leo,
            .last_epoch = pt->replica.leo > ends.start_offset ? plog_epoch_at(pt->log, pt->replica.leo - 1) : -1,
            .start_offset = ends.start_offset,
            .flushed = is_flushed(pt),
            .throttled = is_throttled(pt, pt->config->follower_throttled, pt->deps->me),
        };
    }
    lock_release(&pt->mu);
    return ok;
}

bool partition_copy_is_over(struct partition *pt)
{
    lock_take(&pt->mu);
    bool over = pt->deleted;
    lock_release(&pt->mu);
    return over;
}

/* Takes change_mu unless the answer does not count any more. */
static bool begin_change(struct partition *pt, const struct partition_copy *at, bool cuts)
{
    lock_take(&pt->change_mu);
    lock_take(&pt->mu);
    bool ok = partition_follows(pt) && (cuts ? replica_may_cut : replica_may_use_answer)(&pt->replica, at->leader_epoch, at->leo);
    lock_release(&pt->mu);
    if (!ok)
        lock_release(&pt->change_mu);
    return ok;
}

static enum copy_result end_change(struct partition *pt, enum copy_result result)
{
    lock_release(&pt->change_mu);
    return result;
}

static enum copy_result disk_failed(struct partition *pt, const char *what, int rc)
{
    if (!partition_note_error(pt, -rc))
        log_warn("%s: %s: %s; it is tried again", plog_name(pt->log), what, strerror(-rc));
    return COPY_FAILED;
}

static enum copy_result damaged(struct partition *pt, const char *why)
{
    log_error("%s: %s: this replica is damaged and follows no more", plog_name(pt->log), why);
    partition_disk_failed(pt);
    return COPY_DAMAGED;
}

/* ---- append ---- */
static void note_appended(struct partition *pt, const struct plog_copied *c)
{
    lock_assert_held(&pt->mu);
    int64_t records = c->end_offset - pt->replica.leo;
    if (records == 0)
        return;
    replica_appended(&pt->replica, c->end_offset);
    partition_flush_start(pt, records, c->rolled);
    if (!is_flushed(pt)) /* the leader has gathered already what `interval` gathers */
        partition_flush_soon(pt);
}

static enum copy_result append_held(struct partition *pt, const struct partition_copy *at, struct slice batches,
                                    int64_t leader_hw)
{
    struct plog_copied c = { .end_offset = at->leo };

    lock_take(&pt->mu);
    replica_agreed(&pt->replica);
    lock_release(&pt->mu);
    int rc = batches.n == 0 ? 0 : plog_append_copy(pt->log, batches, world_wall_ms(pt->deps->world), &c);
    if (rc == -EAGAIN) { /* a cut, or a beginning elsewhere, met an error, and the leader, maybe another one, goes on from here */
        c = (struct plog_copied){ .end_offset = at->leo };
        rc = plog_truncate(pt->log, at->leo);
        rc = rc < 0 ? rc : -EAGAIN;
    }
    lock_take(&pt->mu);
    if (batches.n > 0 && (rc == 0 || rc == -ENOSPC || rc == -EDQUOT))
        replica_set_full(&pt->replica, rc < 0);
    if (c.end_offset > at->leo)
        counter_add(&pt->traffic.copied_in, batches.n);
    if (!pt->deleted && replica_follows(&pt->replica)) { /* its disk may have failed meanwhile */
        note_appended(pt, &c);
        replica_learn_hw(&pt->replica, leader_hw);
    }
    partition_wake_due(pt);
    lock_release(&pt->mu);
    if (rc == -EBADMSG) {
        log_warn("%s: the leader (broker %" PRId32 ", epoch %" PRId32 ") sent a batch at offset %" PRId64
                 " that cannot be taken behind offset %" PRId64 ": %s",
                 plog_name(pt->log), at->leader, at->leader_epoch, c.bad_offset, c.end_offset, c.bad);
        return COPY_REFUSED;
    }
    return rc < 0 ? disk_failed(pt, "cannot append what the leader sent", rc) : COPY_DONE;
}

enum copy_result partition_copy_append(struct partition *pt, const struct partition_copy *at, struct slice batches,
                                       int64_t leader_hw)
{
    if (!begin_change(pt, at, false))
        return COPY_STALE;
    return end_change(pt, append_held(pt, at, batches, leader_hw));
}

/* ---- cut ---- */
/* Where this log leaves the leader's (R12): the end of the newest epoch that both may have, on the shorter side. -1: the
 * answer says nothing to cut, which no leader may. */
static int64_t parting_of(struct partition *pt, const struct partition_copy *at, int32_t diverging_epoch,
                          int64_t diverging_end)
{
    int32_t epoch;
    int64_t end;

    plog_epoch_end(pt->log, diverging_epoch, &epoch, &end);
    lock_take(&pt->mu);
    int64_t to = replica_cut_at(&pt->replica, epoch < 0 ? diverging_end : end, diverging_end);
    lock_release(&pt->mu);
    return to >= 0 && to < at->leo ? to : -1;
}

static enum copy_result truncate_held(struct partition *pt, const struct partition_copy *at, int64_t to)
{
    struct plog_ends ends;
    int rc = plog_truncate(pt->log, to);

    if (rc == -ERANGE)
        return damaged(pt, "the leader's log ends below where this one begins");
    if (rc < 0)
        return disk_failed(pt, "cannot cut what the leader does not have", rc);
    plog_ends(pt->log, &ends);
    lock_take(&pt->mu);
    bool sound = !replica_follows(&pt->replica) || replica_truncated(&pt->replica, ends.end_offset, at->last_epoch);
    lock_release(&pt->mu);
    log_info("%s: cut from offset %" PRId64 " to %" PRId64 ", where it parts from the log of broker %" PRId32
             " in epoch %" PRId32,
             plog_name(pt->log), at->leo, ends.end_offset, at->leader, at->leader_epoch);
    return sound ? COPY_DONE : damaged(pt, "committed records had to be cut");
}

enum copy_result partition_copy_truncate(struct partition *pt, const struct partition_copy *at, int32_t diverging_epoch,
                                         int64_t diverging_end)
{
    if (!begin_change(pt, at, true))
        return COPY_STALE;
    int64_t to = parting_of(pt, at, diverging_epoch, diverging_end);
    if (to < 0) {
        log_warn("%s: broker %" PRId32 " says that epoch %" PRId32 " ended at %" PRId64
                 ", which is no reason to cut a log that ends at %" PRId64,
                 plog_name(pt->log), at->leader, diverging_epoch, diverging_end, at->leo);
        return end_change(pt, COPY_REFUSED);
    }
    return end_change(pt, truncate_held(pt, at, to));
}

/* ---- beginning anew ---- */
/* The plain view's bytes of the batch's records below `offset`. */
static int64_t text_before(struct slice batch, int64_t offset)
{
    struct record_iter it;
    struct record r;
    int64_t sum = 0;

    record_iter_init(&it);
    if (record_iter_start(&it, batch, DECOMPRESSED_MAX_BYTES) == 0 && !batch_is_control(&it.h))
        while (record_iter_next(&it, &r) == 1 && r.offset < offset)
            sum += MAX(r.value.n, 0) + 1;
    record_iter_done(&it);
    return sum;
}

/* Where the log has to begin for the first batch, in which `start` may lie. -1: what the leader sent is none. */
static int64_t first_base(struct slice batches, int64_t start)
{
    struct batch_header h;

    if (batches.n == 0)
        return start;
    if (batch_check(batches, INT32_MAX, &h) < 0 || h.base_offset < 0 || h.last_offset_delta < 0)
        return -1;
    return MIN(h.base_offset, start);
}

static enum copy_result restart_held(struct partition *pt, const struct partition_copy *at, int64_t base,
                                     int64_t text_position)
{
    int rc = plog_restart(pt->log, base, text_position);

    if (rc == -EINVAL)
        return damaged(pt, "the leader's first batch begins in the middle of this log");
    if (rc < 0)
        return disk_failed(pt, "cannot begin anew at the leader's start", rc);
    lock_take(&pt->mu);
    if (replica_follows(&pt->replica))
        replica_restarted_at(&pt->replica, base);
    lock_release(&pt->mu);
    log_info("%s: the log of broker %" PRId32 " begins above offset %" PRId64 ", where this one ended: it begins anew at %" PRId64,
             plog_name(pt->log), at->leader, at->leo, base);
    return COPY_DONE;
}

static bool goes_on_at(const struct partition_copy *at, int64_t base)
{
    return base == at->leo && at->start_offset < at->leo;
}

enum copy_result partition_copy_restart(struct partition *pt, const struct partition_copy *at, int64_t start,
                                        int64_t text_position, struct slice batches, int64_t leader_hw)
{
    int64_t base = first_base(batches, start);

    if (base < 0) {
        log_warn("%s: what broker %" PRId32 " sent from its start on is no batch", plog_name(pt->log), at->leader);
        return COPY_REFUSED;
    }
    if (!begin_change(pt, at, false))
        return COPY_STALE;
    struct partition_copy there = *at;
    there.leo = base;
    int64_t before = base < start ? text_before(batches, start) : 0;
    enum copy_result result =
        goes_on_at(at, base) ? COPY_DONE : restart_held(pt, at, base, MAX(text_position - before, 0));
    /* With these at once: the batch that the leader's start lies in cannot be asked for by its first offset. */
    if (result == COPY_DONE)
        result = append_held(pt, &there, batches, leader_hw);
    return end_change(pt, result);
}

enum copy_result partition_copy_delete_before(struct partition *pt, const struct partition_copy *at, int64_t start)
{
    lock_take(&pt->change_mu);
    lock_take(&pt->mu);
    bool ok = partition_follows(pt) && pt->replica.state.leader_epoch == at->leader_epoch && start <= pt->replica.leo;
    lock_release(&pt->mu);
    int rc = ok ? plog_delete_before(pt->log, start) : 0;
    enum copy_result result = !ok ? COPY_STALE : rc < 0 ? disk_failed(pt, "cannot let go of what the leader has deleted", rc) : COPY_DONE;
    return end_change(pt, result);
}

/* ---- waiting for the flush ---- */
bool partition_copy_watch(struct partition *pt, struct watcher *w, int64_t leo)
{
    KCHECK(w->what == WATCH_COPY && !w->waiting);
    lock_take(&pt->mu);
    w->wake_at = leo;
    w->waiting = partition_follows(pt) && !is_flushed(pt) && pt->replica.fleo < leo;
    if (w->waiting)
        LIST_INSERT_HEAD(&pt->watchers, w, link);
    bool waiting = w->waiting;
    lock_release(&pt->mu);
    return waiting;
}
