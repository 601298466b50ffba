/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One hosted partition: the way of a batch into the log, and of news about it to those who wait.
 *
 * Any thread; what replication does is in partition_follow.c. partition.mu orders appends and guards the replica's state
 * machine; it is held across the write to the page cache (so that offsets and bytes have one order), never across a wait
 * for the disk. Validation, the expensive part, runs before the lock. Knows nothing of connections and requests.
 */
#include "daemon/replica/partition.h"

#include <errno.h>
#include <string.h>

#include "daemon/replica/partition_int.h"
#include "daemon/storage/logdirs.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/world.h"
#include "lib/metrics/histogram.h"

/* A compressed batch may not grow beyond this: a small request must not take the machine. */
enum { DECOMPRESSED_MAX_BYTES = 64 * 1024 * 1024 };

/* ---- waiting ---- */
static bool partition_serves(const struct partition *pt)
{
    return !pt->deleted && replica_leads(&pt->replica);
}

static bool watcher_is_due(const struct partition *pt, const struct watcher *w)
{
    switch (w->what) {
    case WATCH_HW:
        return pt->replica.hw >= w->wake_at;
    case WATCH_LEO:
        return pt->replica.leo >= w->wake_at;
    case WATCH_FLUSH:
    case WATCH_COPY:
        break;
    }
    return pt->replica.fleo >= w->wake_at;
}

static void forget(struct partition *pt, struct watcher *w)
{
    LIST_REMOVE(w, link);
    w->waiting = false;
    pt->n_leo_watchers -= w->what == WATCH_LEO;
}

static void tell(struct partition *pt, struct watcher *w)
{
    forget(pt, w);
    loop_post(w->loop, w->task);
}

void partition_wake_due(struct partition *pt)
{
    lock_assert_held(&pt->mu);
    struct watcher *next;
    for (struct watcher *w = LIST_FIRST(&pt->watchers); w != NULL; w = next) {
        next = LIST_NEXT(w, link);
        if (watcher_is_due(pt, w))
            tell(pt, w);
    }
}

static void wake_all(struct partition *pt)
{
    lock_assert_held(&pt->mu);
    while (!LIST_EMPTY(&pt->watchers))
        tell(pt, LIST_FIRST(&pt->watchers));
}

bool partition_watch(struct partition *pt, struct watcher *w)
{
    lock_take(&pt->mu);
    KCHECK(!w->waiting);
    w->waiting = (partition_serves(pt) || (w->of_copy && partition_follows(pt))) && !watcher_is_due(pt, w);
    if (w->waiting) {
        LIST_INSERT_HEAD(&pt->watchers, w, link);
        pt->n_leo_watchers += w->what == WATCH_LEO;
    }
    bool waiting = w->waiting;
    lock_release(&pt->mu);
    return waiting;
}

void partition_unwatch(struct partition *pt, struct watcher *w)
{
    lock_take(&pt->mu);
    if (w->waiting)
        forget(pt, w);
    lock_release(&pt->mu);
}

void partition_wake_all(struct partition *pt)
{
    lock_take(&pt->mu);
    wake_all(pt);
    lock_release(&pt->mu);
}

/* ---- append ---- */
static enum kerr append_fail(struct partition_appended *ret, enum kerr err, const char *text)
{
    ret->err = err;
    ret->text = text;
    return err;
}

/* What is asked of one that is being removed. */
static enum kerr removed_err(const struct partition *pt)
{
    return pt->moved_away ? KERR_NOT_LEADER_OR_FOLLOWER : KERR_UNKNOWN_TOPIC_OR_PARTITION;
}

/* May this broker take the batch at all? */
static enum kerr append_admit(struct partition *pt, int16_t acks, struct partition_appended *ret)
{
    lock_assert_held(&pt->mu);
    ret->leader = pt->replica.state.leader;
    ret->leader_epoch = pt->replica.state.leader_epoch;
    if (pt->deleted)
        return append_fail(ret, removed_err(pt), NULL);
    if (pt->replica.role == REPLICA_DAMAGED)
        return append_fail(ret, KERR_KAFKA_STORAGE_ERROR, "the partition's log directory has failed");
    if (!replica_leads(&pt->replica))
        return append_fail(ret, KERR_NOT_LEADER_OR_FOLLOWER, NULL);
    if (acks == -1 && !replica_has_min_isr(&pt->replica))
        return append_fail(ret, KERR_NOT_ENOUGH_REPLICAS, NULL); /* R7 */
    return KERR_NONE;
}

static struct batch_rules rules_of(const struct partition *pt, bool zstd_allowed)
{
    lock_assert_held(&pt->mu);
    const struct topic_config *cfg = pt->config;
    return (struct batch_rules){
        .max_message_bytes = cfg->max_message_bytes,
        .segment_bytes = cfg->plog.segment_bytes,
        .now_ms = world_wall_ms(pt->deps->world),
        .timestamp_before_max_ms = cfg->timestamp_before_max_ms,
        .timestamp_after_max_ms = cfg->timestamp_after_max_ms,
        .decompressed_max = DECOMPRESSED_MAX_BYTES,
        .log_append_time = cfg->log_append_time,
        .need_key = cfg->compact,
        .zstd_allowed = zstd_allowed,
    };
}

/* How the topic wants its batches packed. */
struct packing {
    bool any; /* as they come */
    enum codec codec;
    int level;
    int64_t batch_bytes_max;
};

static struct packing packing_of(const struct topic_config *cfg)
{
    struct packing p = { .batch_bytes_max = MIN((int64_t)cfg->max_message_bytes, cfg->plog.segment_bytes) };
    p.any = !topic_config_codec(cfg, &p.codec, &p.level);
    return p;
}

/* The judged batch in the topic's codec: the batch itself, or a new one in own. */
static enum kerr append_pack(const struct packing *p, struct slice *batch, struct batch_info *info,
                             struct bytebuf *own, struct partition_appended *ret)
{
    if (p->any || batch_codec(&info->h) == p->codec)
        return KERR_NONE;
    if (batch_recompress(*batch, p->codec, p->level, DECOMPRESSED_MAX_BYTES, own) < 0)
        return append_fail(ret, KERR_UNKNOWN_SERVER_ERROR, "the batch cannot be packed as compression.type says");
    if ((int64_t)own->n > p->batch_bytes_max)
        return append_fail(ret, KERR_MESSAGE_TOO_LARGE,
                           "the record batch is too large once it is packed as compression.type says");
    batch_header_read(own->p, &info->h);
    *batch = slice_of(own->p, own->n);
    return KERR_NONE;
}

static enum kerr append_judge(const struct batch_rules *rules, uint8_t *batch, size_t n,
                              struct batch_info *info, struct partition_appended *ret)
{
    enum kerr err = batch_validate(batch, n, rules, info);
    if (err != KERR_NONE) {
        ret->bad_index = info->bad_index;
        return append_fail(ret, err, info->bad_text);
    }
    /* No transaction is open anywhere yet, so none can be verified. */
    if (batch_is_transactional(&info->h))
        return append_fail(ret, KERR_INVALID_TXN_STATE, "the batch belongs to no open transaction");
    if (rules->log_append_time)
        batch_set_log_append_time(batch, n, rules->now_ms);
    return KERR_NONE;
}

/* What the topic's policy asks for after an append; returns whether hw moved at once. A segment
 * that was closed is flushed whatever the policy: nobody writes to it any more, and until then its descriptor
 * must stay open. */
bool partition_flush_start(struct partition *pt, int64_t records, bool rolled)
{
    lock_assert_held(&pt->mu);
    struct flusher *f = pt->deps->flusher;
    const struct topic_config *cfg = pt->config;
    switch (cfg->flush_policy) {
    case FLUSH_ASYNC:
        if (rolled)
            flusher_queue(f, &pt->flush);
        return replica_flushed(&pt->replica, pt->replica.leo);
    case FLUSH_INTERVAL:
        if (pt->unflushed_messages == 0)
            flusher_queue_by(f, &pt->flush, time_add(world_mono_ms(pt->deps->world), cfg->flush_ms));
        pt->unflushed_messages += records;
        if (pt->unflushed_messages >= cfg->flush_messages)
            flusher_queue(f, &pt->flush);
        return false;
    case FLUSH_COMMIT:
        flusher_queue(f, &pt->flush);
        return false;
    }
    return false;
}

static void append_note_progress(const struct partition *pt, struct partition_appended *ret)
{
    ret->committed = replica_committed(&pt->replica, ret->last_offset);
    ret->flushed = pt->replica.fleo > ret->last_offset;
}

static void append_write(struct partition *pt, struct slice batch, const struct batch_info *info,
                         const struct batch_rules *rules, struct partition_appended *ret)
{
    struct plog_appended a;
    int64_t append_time = rules->log_append_time ? rules->now_ms : -1;
    plog_append(pt->log, (uint8_t *)(uintptr_t)batch.p, batch.n, info, pt->replica.state.leader_epoch, rules->now_ms, append_time, &a);
    ret->err = a.err;
    ret->eno = a.eno;
    ret->text = a.err == KERR_KAFKA_STORAGE_ERROR && a.eno != 0 ? strerror(a.eno) : NULL;
    if (a.err == KERR_NONE || a.eno == ENOSPC || a.eno == EDQUOT)
        replica_set_full(&pt->replica, a.err != KERR_NONE);
    if (a.err != KERR_NONE)
        return;

    ret->base_offset = a.base_offset;
    ret->last_offset = a.last_offset;
    ret->log_append_time = a.log_append_time;
    if (a.duplicate) {
        append_note_progress(pt, ret);
        return;
    }
    counter_add(&pt->traffic.bytes_in, batch.n);
    counter_add(&pt->traffic.records_in, (uint64_t)(a.last_offset + 1 - a.base_offset));
    KINVARIANT("R19", a.base_offset == pt->replica.leo && a.last_offset >= a.base_offset);
    bool moved = replica_appended(&pt->replica, a.last_offset + 1);
    KINVARIANT("R5", pt->replica.hw <= a.base_offset); /* it is not committed by being written */
    moved |= partition_flush_start(pt, a.last_offset + 1 - a.base_offset, a.rolled);
    if (moved || pt->n_leo_watchers > 0)
        partition_wake_due(pt);
    append_note_progress(pt, ret);
}

static int64_t start_offset_of(const struct partition *pt)
{
    struct plog_ends ends;
    plog_ends(pt->log, &ends);
    return ends.start_offset;
}

void partition_append(struct partition *pt, uint8_t *batch, size_t n, int16_t acks, bool zstd_allowed,
                      bool internal_writer, struct partition_appended *ret)
{
    *ret = (struct partition_appended){
        .bad_index = -1, .base_offset = -1, .last_offset = -1, .log_append_time = -1, .start_offset = -1
    };
    if (pt->internal && !internal_writer) {
        append_fail(ret, KERR_INVALID_TOPIC_EXCEPTION, "the topic is klog's own");
        return;
    }

    lock_take(&pt->mu);
    enum kerr err = append_admit(pt, acks, ret);
    struct batch_rules rules = rules_of(pt, zstd_allowed);
    struct packing packing = packing_of(pt->config);
    lock_release(&pt->mu);

    CLEANUP(bytebuf_done) struct bytebuf own = { 0 };
    struct slice packed = slice_of(batch, n);
    struct batch_info info;
    if (err != KERR_NONE || append_judge(&rules, batch, n, &info, ret) != KERR_NONE ||
        append_pack(&packing, &packed, &info, &own, ret) != KERR_NONE)
        return;

    lock_take(&pt->mu);
    if (append_admit(pt, acks, ret) == KERR_NONE) {
        append_write(pt, packed, &info, &rules, ret);
        ret->start_offset = start_offset_of(pt);
    }
    lock_release(&pt->mu);
    if (ret->err == KERR_KAFKA_STORAGE_ERROR)
        partition_note_error(pt, ret->eno);
}

int32_t partition_refused(struct partition *pt, const uint8_t *batch, size_t n, bool zstd_allowed,
                          struct batch_refusal *ret, int32_t max)
{
    lock_take(&pt->mu);
    struct batch_rules rules = rules_of(pt, zstd_allowed);
    lock_release(&pt->mu);
    return batch_refused(batch, n, &rules, ret, max);
}

void partition_note_fetched(struct partition *pt, int64_t n, bool by_follower)
{
    atomic_fetch_add_explicit(by_follower ? &pt->traffic.copied_out : &pt->traffic.bytes_out, (uint64_t)n, memory_order_relaxed);
}

void traffic_add(struct traffic *to, const struct partition_traffic *t)
{
    to->bytes_in += counter_get(&t->bytes_in);
    to->records_in += counter_get(&t->records_in);
    to->bytes_out += counter_get(&t->bytes_out);
    to->copied_in += counter_get(&t->copied_in);
    to->copied_out += counter_get(&t->copied_out);
}

/* ---- view ---- */
void partition_view(struct partition *pt, struct partition_view *ret)
{
    struct plog_ends ends = { 0 };
    lock_take(&pt->mu);
    const struct replica *r = &pt->replica;
    ret->err = pt->deleted                  ? removed_err(pt)
               : r->role == REPLICA_DAMAGED ? KERR_KAFKA_STORAGE_ERROR
               : !replica_leads(r)          ? KERR_NOT_LEADER_OR_FOLLOWER
                                            : KERR_NONE;
    if (pt->log != NULL)
        plog_ends(pt->log, &ends);
    ret->leader = r->state.leader;
    ret->leader_epoch = r->state.leader_epoch;
    ret->start_offset = ends.start_offset;
    /* Retention may have passed a watermark that a checkpoint left behind; nothing below the start is there
     * to see. */
    ret->hw = r->hw < ends.start_offset ? ends.start_offset : r->hw;
    ret->lso = ret->hw; /* no transaction is open: all that is committed is stable */
    ret->is_zstd = pt->config->compression_type == COMPRESSION_ZSTD;
    ret->leo = r->leo;
    ret->fleo = r->fleo;
    ret->hw_is_current = replica_hw_is_current(r);
    ret->copies = !pt->deleted && r->role == REPLICA_FETCHING;
    ret->has_min_isr = replica_has_min_isr(r);
    ret->throttled = false;
    lock_release(&pt->mu);
}

bool partition_view_is_settled(const struct partition_view *v)
{
    return v->err == KERR_NONE ? v->hw_is_current : v->err == KERR_NOT_LEADER_OR_FOLLOWER && v->copies;
}

enum kerr partition_epoch_check(const struct partition_view *v, int32_t client_epoch)
{
    if (client_epoch == -1 || client_epoch == v->leader_epoch)
        return KERR_NONE;
    return client_epoch < v->leader_epoch ? KERR_FENCED_LEADER_EPOCH : KERR_UNKNOWN_LEADER_EPOCH;
}

/* ---- flushing, on the flusher's threads ---- */
static void flush_began(struct partition *pt)
{
    lock_take(&pt->mu);
    pt->unflushed_messages = 0;
    lock_release(&pt->mu);
}

static void flushed(struct partition *pt, int64_t fleo)
{
    lock_take(&pt->mu);
    int64_t before = pt->replica.fleo;
    if (replica_flushed(&pt->replica, fleo) || pt->replica.fleo != before)
        partition_wake_due(pt);
    lock_release(&pt->mu);
}

/* Those who wait are told before the checkpoint is written. 0 or -errno. */
static int flush_log(struct partition *pt)
{
    flush_began(pt);
    struct plog_flush *ticket = plog_flush_begin(pt->log);
    if (ticket == NULL) {
        struct plog_ends ends;
        plog_ends(pt->log, &ends);
        flushed(pt, ends.flushed_offset);
        return 0;
    }

    int rc = plog_flush_run(ticket);
    int64_t fleo = plog_flush_end(pt->log, ticket, rc);
    if (rc < 0)
        return rc;
    flushed(pt, fleo);
    struct partition_view v;
    partition_view(pt, &v);
    return plog_checkpoint(pt->log, v.hw, false);
}

static struct partition *flush_owner(struct flush_entry *e)
{
    return container_of(e, struct partition, flush);
}

static bool flush_run(struct flush_entry *e)
{
    struct partition *pt = flush_owner(e);
    int rc = flush_log(pt);
    if (rc == 0 || partition_note_error(pt, -rc))
        return true;
    log_warn("%s: cannot flush the log, or write its checkpoint: %s", plog_name(pt->log), strerror(-rc));
    return rc != -EMFILE && rc != -ENFILE;
}

static void flush_ref(struct flush_entry *e)
{
    partition_ref(flush_owner(e));
}

static void flush_unref(struct flush_entry *e)
{
    partition_unref(flush_owner(e));
}

const struct flush_ops partition_flush_ops = { .flush = flush_run, .ref = flush_ref, .unref = flush_unref };

void partition_flush_soon(struct partition *pt)
{
    flusher_queue(pt->deps->flusher, &pt->flush);
}

/* ---- events ---- */
bool partition_note_error(struct partition *pt, int eno)
{
    return logdirs_note_error(pt->deps->dirs, pt->dir, eno);
}

void partition_disk_failed(struct partition *pt)
{
    lock_take(&pt->mu);
    replica_damage(&pt->replica);
    wake_all(pt);
    lock_release(&pt->mu);
}

void partition_set_config(struct partition *pt, struct topic_config *cfg)
{
    topic_config_ref(cfg);
    lock_take(&pt->mu);
    struct topic_config *old = pt->config;
    pt->config = cfg;
    replica_set_min_isr(&pt->replica, cfg->min_insync_replicas);
    if (pt->log != NULL)
        plog_set_config(pt->log, &cfg->plog);
    /* The policy may have changed under records that wait for the old one. */
    if (pt->replica.fleo < pt->replica.leo)
        partition_flush_soon(pt);
    partition_wake_due(pt);
    lock_release(&pt->mu);
    topic_config_unref(old);
}

/* It is a replica like one that was added just now, once the register does not count on what it had. */
static void come_back(struct partition *pt)
{
    struct plog_ends ends;

    lock_assert_held(&pt->mu);
    if (!pt->begins_anew || pt->log == NULL)
        return;
    plog_ends(pt->log, &ends);
    if (!replica_repaired(&pt->replica, ends.end_offset, ends.flushed_offset, ends.checkpoint_hw))
        return;
    pt->begins_anew = false;
    wake_all(pt);
}

bool partition_set_state(struct partition *pt, const struct partition_state *st)
{
    lock_take(&pt->change_mu);
    lock_take(&pt->mu);
    bool leads = replica_would_lead(&pt->replica, st);
    lock_release(&pt->mu);

    if (leads && pt->log != NULL)
        plog_epoch_begin(pt->log, st->leader_epoch);

    lock_take(&pt->mu);
    enum replica_answer answer = replica_set_state(&pt->replica, st);
    if (answer == REPLICA_TAKEN)
        wake_all(pt);
    partition_ail(pt);
    come_back(pt);
    bool to_mend = pt->damage_at >= 0 && replica_may_be_repaired(&pt->replica);
    lock_release(&pt->mu);
    lock_release(&pt->change_mu);
    if (to_mend)
        partitions_want_care(pt->registry);
    return answer == REPLICA_TAKEN || answer == REPLICA_KNOWN;
}

void partition_set_broker_epoch(struct partition *pt, int64_t be)
{
    lock_take(&pt->mu);
    bool led = replica_leads(&pt->replica);
    replica_set_broker_epoch(&pt->replica, be);
    if (led && !replica_leads(&pt->replica))
        wake_all(pt);
    lock_release(&pt->mu);
}

/* ---- changes of the register ---- */
bool partition_tick(struct partition *pt, const struct replica_tick *t, struct state_change *ret)
{
    lock_take(&pt->mu);
    bool wanted = !pt->deleted && replica_tick(&pt->replica, t, ret);
    lock_release(&pt->mu);
    return wanted;
}

bool partition_proposal_sent(struct partition *pt, const struct state_change *c)
{
    lock_take(&pt->mu);
    bool sent = replica_proposal_sent(&pt->replica, c);
    lock_release(&pt->mu);
    return sent;
}

void partition_proposal_confirmed(struct partition *pt, const struct state_change *c, int64_t version)
{
    lock_take(&pt->mu);
    partitions_note_isr(pt->registry, pt->replica.state.n_isr, c->to.n_isr);
    replica_proposal_confirmed(&pt->replica, c, version);
    wake_all(pt);
    come_back(pt);
    bool to_mend = pt->damage_at >= 0 && replica_may_be_repaired(&pt->replica);
    lock_release(&pt->mu);
    if (to_mend)
        partitions_want_care(pt->registry);
}

void partition_proposal_failed(struct partition *pt, bool unknown)
{
    lock_take(&pt->mu);
    if (unknown)
        replica_proposal_unknown(&pt->replica);
    else if (replica_proposal_failed(&pt->replica))
        partition_wake_due(pt);
    lock_release(&pt->mu);
}
