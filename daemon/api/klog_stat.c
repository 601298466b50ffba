/* SPDX-License-Identifier: Apache-2.0 */
/*
 * KlogStat (klog's own): where partitions end, in records and in bytes of their plain view. A long poll: it
 * parks until a partition's visible end is another than the one the client knows, then tells all that
 * changed. After max_wait_ms it tells every partition as it stands, so that starts moved by retention come
 * through as well.
 *
 * On the session's loop. The visible end is min(hw, lso).
 */
#include "daemon/api/api.h"
#include "daemon/api/services.h"
#include "daemon/replica/partition.h"

struct stat_part {
    const struct klog_stat_request_partitions *q;
    struct partition *pt; /* a reference; NULL: not here */
    enum kerr missing;    /* then: why */
    struct watcher watcher;
    struct partition_view view; /* of the last look */
};

struct klog_stat {
    struct request *r;
    const struct klog_stat_request *q;
    struct stat_part *parts; /* in the order of the request */
    size_t n_parts;
    struct task wake;
    struct timer timeout;
};

static int64_t visible_end(const struct partition_view *v)
{
    return MIN(v->hw, v->lso);
}

static bool part_changed(const struct stat_part *p)
{
    return p->view.err != KERR_NONE || visible_end(&p->view) != p->q->known_end_offset;
}

static bool stat_look(struct klog_stat *st)
{
    bool changed = st->n_parts == 0;
    for (size_t i = 0; i < st->n_parts; i++) {
        struct stat_part *p = &st->parts[i];
        if (p->pt == NULL)
            p->view.err = p->missing;
        else
            partition_view(p->pt, &p->view);
        changed |= part_changed(p);
    }
    return changed;
}

/* ---- the answer ---- */
static enum kerr tell_text(struct partition *pt, struct klog_stat_response_partitions *out)
{
    int rc = plog_text_of_offset(pt->log, out->start_offset, &out->start_text);
    if (rc == 0)
        rc = plog_text_of_offset(pt->log, out->end_offset, &out->end_text);
    return rc < 0 ? kerr_of_errno(-rc) : KERR_NONE;
}

static void part_tell_now(struct stat_part *p, struct klog_stat_response_partitions *out)
{
    *out = (struct klog_stat_response_partitions){
        .index = p->q->index,
        .error_code = (int16_t)p->view.err,
        .leader_epoch = -1,
        .start_offset = -1,
        .end_offset = -1,
        .start_text = -1,
        .end_text = -1,
        .size_bytes = -1,
        .newest_timestamp = -1,
        .text_era = -1,
    };
    if (p->view.err != KERR_NONE)
        return;
    struct plog_ends ends;
    plog_ends(p->pt->log, &ends); /* the era first: positions that move meanwhile belong to a newer one */
    out->text_era = ends.text_era;
    out->leader_epoch = p->view.leader_epoch;
    out->start_offset = ends.start_offset;
    out->end_offset = MAX(visible_end(&p->view), ends.start_offset);
    out->size_bytes = ends.size_bytes;
    out->newest_timestamp = ends.newest_timestamp;
    out->error_code = (int16_t)tell_text(p->pt, out);
}

/* Records may be deleted between the look at the log's start and the look for its text. */
static bool start_moved_on(const struct stat_part *p, const struct klog_stat_response_partitions *out)
{
    struct plog_ends ends;
    if (out->error_code != KERR_OFFSET_OUT_OF_RANGE)
        return false;
    plog_ends(p->pt->log, &ends);
    return ends.start_offset > out->start_offset;
}

static void part_tell(struct stat_part *p, struct klog_stat_response_partitions *out)
{
    part_tell_now(p, out);
    while (start_moved_on(p, out)) {
        partition_view(p->pt, &p->view);
        part_tell_now(p, out);
    }
}

static void topic_tell(struct klog_stat *st, struct stat_part *parts, int32_t n, bool all,
                       struct klog_stat_response_topics *out)
{
    out->partitions = arena_array(&st->r->arena, (size_t)n, sizeof *out->partitions);
    for (int32_t i = 0; i < n; i++)
        if (all || part_changed(&parts[i]))
            part_tell(&parts[i], &out->partitions[out->n_partitions++]);
}

static void stat_drop_references(struct klog_stat *st)
{
    for (size_t i = 0; i < st->n_parts; i++)
        partition_unref(st->parts[i].pt);
}

static void stat_answer(struct klog_stat *st, bool all)
{
    struct klog_stat_response rsp;
    wire_defaults(&wire_klog_stat_response, &rsp);
    rsp.topics = arena_array(&st->r->arena, (size_t)st->q->n_topics, sizeof *rsp.topics);
    struct stat_part *p = st->parts;
    for (int32_t i = 0; i < st->q->n_topics; i++) {
        const struct klog_stat_request_topics *t = &st->q->topics[i];
        struct klog_stat_response_topics *out = &rsp.topics[rsp.n_topics];
        out->name = t->name;
        out->topic_id = t->topic_id;
        topic_tell(st, p, t->n_partitions, all, out);
        rsp.n_topics += out->n_partitions > 0;
        p += t->n_partitions;
    }
    timer_clear(st->r->loop, &st->timeout);
    loop_cancel(st->r->loop, &st->wake);
    stat_drop_references(st);
    request_reply(st->r, &rsp);
}

/* ---- waiting ---- */
static void stat_unwatch(struct klog_stat *st)
{
    for (size_t i = 0; i < st->n_parts; i++)
        if (st->parts[i].pt != NULL)
            partition_unwatch(st->parts[i].pt, &st->parts[i].watcher);
}

static bool stat_watch(struct klog_stat *st)
{
    for (size_t i = 0; i < st->n_parts; i++) {
        struct stat_part *p = &st->parts[i];
        p->watcher.wake_at = p->view.hw + 1;
        if (!partition_watch(p->pt, &p->watcher)) {
            stat_unwatch(st);
            return false;
        }
    }
    return true;
}

static bool stat_try(struct klog_stat *st)
{
    do {
        if (stat_look(st)) {
            stat_answer(st, false);
            return true;
        }
    } while (!stat_watch(st));
    return false;
}

static void on_wake(struct task *t)
{
    struct klog_stat *st = container_of(t, struct klog_stat, wake);
    stat_unwatch(st);
    stat_try(st);
}

static void stat_finish(struct request *r)
{
    struct klog_stat *st = r->op;
    stat_unwatch(st);
    stat_look(st);
    stat_answer(st, true);
}

static void on_timeout(struct timer *t)
{
    stat_finish(container_of(t, struct klog_stat, timeout)->r);
}

static void stat_cancel(struct request *r)
{
    struct klog_stat *st = r->op;
    stat_unwatch(st);
    timer_clear(r->loop, &st->timeout);
    loop_cancel(r->loop, &st->wake);
    stat_drop_references(st);
    request_drop(r);
}

/* ---- the request ---- */
static void stat_find_parts(struct klog_stat *st)
{
    size_t n = 0;
    for (int32_t i = 0; i < st->q->n_topics; i++)
        n += (size_t)st->q->topics[i].n_partitions;
    st->parts = arena_array(&st->r->arena, n, sizeof *st->parts);
    for (int32_t i = 0; i < st->q->n_topics; i++)
        for (int32_t k = 0; k < st->q->topics[i].n_partitions; k++) {
            struct stat_part *p = &st->parts[st->n_parts++];
            p->q = &st->q->topics[i].partitions[k];
            p->watcher = (struct watcher){ .loop = st->r->loop, .task = &st->wake, .what = WATCH_HW };
            p->pt = partitions_get_named(st->r->services->partitions, st->q->topics[i].name,
                                         &st->q->topics[i].topic_id, p->q->index, &p->missing);
        }
}

void handle_klog_stat(struct request *r)
{
    struct klog_stat *st = arena_alloc(&r->arena, sizeof *st);
    r->op = st;
    st->r = r;
    st->q = r->body;
    st->wake.cb = on_wake;
    st->timeout.cb = on_timeout;
    stat_find_parts(st);
    if (st->q->max_wait_ms <= 0) {
        bool changed = stat_look(st);
        stat_answer(st, !changed);
        return;
    }
    if (stat_try(st))
        return;
    r->cancel = stat_cancel;
    r->finish = stat_finish;
    timer_set_in(r->loop, &st->timeout, st->q->max_wait_ms);
}
