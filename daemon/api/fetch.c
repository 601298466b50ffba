/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetch: finds where the asked batches lie and lets them leave by sendfile; nothing here looks into a batch.
 * When there is less than min_bytes the request parks: one watcher a partition, a timer, and no thread. A
 * wake-up reads everything anew, which costs two lock operations for a partition with nothing new.
 *
 * A follower is a broker that says so with its broker epoch (KIP-903) and is one of the partition's replicas. It reads up
 * to the end, and where it goes on reading tells what it has: that moves the high watermark. Who claims to be a replica
 * without a broker epoch, as in versions below 15, is a consumer as any other.
 *
 * A consumer that names its rack may read from a follower, up to what that knows to be committed, and is sent to one in its
 * rack where replica.selector.class says so (KIP-392). One that names none is told who leads, as ever.
 *
 * On the session's loop. Fetch sessions (KIP-227) are not kept: every answer has session id 0, which tells
 * the client to name all its partitions each time. Epochs 0 and -1 open and close a session, and name all
 * partitions; any other epoch goes on with a session that is not there.
 */
#include <errno.h>

#include "daemon/api/api.h"
#include "daemon/api/services.h"
#include "daemon/meta/cluster.h"
#include "daemon/replica/partition_follow.h"
#include "daemon/replica/throttle.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/world.h"

enum {
    RESPONSE_BYTES_MAX = 55 * 1024 * 1024, /* as Kafka's fetch.max.bytes */
    PARTS_MAX = 50000,     /* of one request: a reactor looks at all of them in one go */
    COPY_BYTES_MAX = 4096, /* a piece this small costs less copied into the answer than by sendfile */
};

struct fetch_part {
    const struct fetch_request_partitions *q;
    struct partition *pt; /* NULL: not here; err says what to answer */
    struct watcher watcher;
    enum kerr err; /* known from the start */
    /* what the last look found */
    enum kerr found;
    struct partition_view view;
    struct plog_span span;
    bool diverged;
    int32_t diverging_epoch;
    int64_t diverging_end;
    bool unready; /* an index has to be made before anything can be found */
    bool tried;   /* it was tried: ready_rc is what came of it */
    int ready_rc;
    int32_t nearer; /* the broker to read from instead; -1: this one */
    bool counted; /* a follower's: what it has was noted; a later look shows nothing new of that */
};

struct fetch {
    struct request *r;
    const struct fetch_request *q;
    bool is_follower;
    struct partition_follower who;
    bool stale; /* no broker lives in the epoch that it names: what it says of its log is believed of nobody */
    bool may_copy;           /* a consumer that may read what this broker only copies */
    const int32_t *near;     /* brokers to send it to instead */
    int32_t n_near;
    struct fetch_part *parts; /* in the order of the request */
    size_t n_parts;
    int64_t max_bytes;
    int64_t bytes; /* in the spans */
    int64_t throttled; /* of these, what keeps to a rate */
    bool urgent;   /* an error, a divergence, another broker to read from: answer at once */
    bool unready;  /* some part is */
    struct task wake;
    struct timer timeout;
    int64_t until_ms;    /* when to answer with what there is; loop time */
    struct job readying; /* makes indexes for the parts that are not ready */
};

/* ---- one look at one partition ---- */
static void part_view(const struct fetch *f, struct fetch_part *p)
{
    if (f->is_follower)
        partition_follower_view(p->pt, &f->who, p->q->current_leader_epoch, &p->view);
    else
        partition_view(p->pt, &p->view);
    if (f->may_copy && p->view.copies && p->view.err == KERR_NOT_LEADER_OR_FOLLOWER)
        p->view.err = KERR_NONE;
    if (f->stale && p->view.err == KERR_NONE)
        p->view.err = KERR_STALE_BROKER_EPOCH;
}

static void part_forget(struct fetch_part *p)
{
    if (p->span.file != NULL)
        plog_span_release(&p->span);
    p->span = (struct plog_span){ 0 };
    p->diverged = p->unready = false;
    p->nearer = -1;
}

/* KIP-595: the fetcher's last epoch ended earlier here than where it asks to go on. */
static enum kerr part_check_divergence(struct fetch_part *p)
{
    if (p->q->last_fetched_epoch < 0)
        return KERR_NONE;
    int32_t epoch;
    int64_t end;
    plog_epoch_end(p->pt->log, p->q->last_fetched_epoch, &epoch, &end);
    if (epoch < 0)
        return KERR_OFFSET_OUT_OF_RANGE;
    p->diverged = epoch < p->q->last_fetched_epoch || end < p->q->fetch_offset;
    p->diverging_epoch = epoch;
    p->diverging_end = end;
    return KERR_NONE;
}

/* Has the follower all below the offset it asks for? Its last epoch was compared; without one only when its log is empty
 * there, and not when it is about to begin anew there. */
static bool part_shows_progress(const struct fetch_part *p)
{
    const struct fetch_request_partitions *q = p->q;
    return q->last_fetched_epoch >= 0 || q->fetch_offset == 0 || q->log_start_offset == q->fetch_offset;
}

static void part_count(const struct fetch *f, struct fetch_part *p)
{
    if (p->counted || !part_shows_progress(p))
        return;
    p->counted = true;
    partition_follower_fetched(p->pt, &f->who, p->q->current_leader_epoch, p->q->fetch_offset);
    partition_follower_view(p->pt, &f->who, p->q->current_leader_epoch, &p->view); /* with the watermark that it moved */
}

static int64_t part_limit(const struct fetch *f, const struct fetch_part *p)
{
    const struct partition_view *v = &p->view;
    return f->is_follower ? v->leo : f->q->isolation_level == 1 ? v->lso : v->hw;
}

/* At most so much for a replica that keeps to a rate. */
static int64_t part_throttle(const struct fetch *f, const struct fetch_part *p, int64_t max)
{
    if (!p->view.throttled)
        return max;
    int64_t room = throttle_room(f->r->services->throttle, world_mono_ms(f->r->services->world));
    return MIN(max, MAX(room - f->throttled, 0));
}

static bool part_is_elsewhere(const struct fetch *f, struct fetch_part *p)
{
    if (f->n_near > 0 && p->view.err == KERR_NONE)
        p->nearer = partition_nearest(p->pt, p->q->fetch_offset, f->near, f->n_near);
    return p->nearer >= 0;
}

static enum kerr part_read(const struct fetch *f, struct fetch_part *p, int64_t room)
{
    const struct partition_view *v = &p->view;
    int64_t offset = p->q->fetch_offset;
    if (offset < v->start_offset)
        return KERR_OFFSET_OUT_OF_RANGE;
    enum kerr err = part_check_divergence(p); /* of a log that lost its end, too */
    if (err != KERR_NONE || p->diverged)
        return err;
    if (offset > v->leo)
        return KERR_OFFSET_OUT_OF_RANGE;

    if (f->is_follower)
        part_count(f, p);
    if (v->err != KERR_NONE)
        return v->err;

    if (v->is_zstd && f->r->api_version < 10) /* KIP-110: such clients know no zstd */
        return KERR_UNSUPPORTED_COMPRESSION_TYPE;

    int64_t limit = part_limit(f, p);
    if (part_is_elsewhere(f, p))
        return KERR_NONE;
    int64_t max = MIN((int64_t)MAX(p->q->partition_max_bytes, 0), room), slow = part_throttle(f, p, max);
    bool first = f->bytes == 0; /* the first that has anything gives one batch, whatever its size */
    if (offset >= limit || (max <= 0 && !first) || (slow <= 0 && p->view.throttled))
        return KERR_NONE;
    max = slow;
    int rc = f->is_follower ? plog_read_to_copy(p->pt->log, offset, limit, MAX(max, 0), first, &p->span)
                            : plog_read(p->pt->log, offset, limit, MAX(max, 0), first, &p->span);
    if (rc == -EAGAIN) {
        p->unready = !p->tried;
        rc = p->tried ? p->ready_rc : 0;
        p->tried = false;
    }
    if (rc == -EBADMSG || rc == -EIO || rc == -ENOENT)
        partition_suspect(p->pt, offset);
    if (rc == -ERANGE) {
        part_view(f, p); /* retention was faster: say where the log starts now */
        return KERR_OFFSET_OUT_OF_RANGE;
    }
    return rc < 0 ? kerr_of_errno(-rc) : KERR_NONE;
}

static enum kerr part_look(const struct fetch *f, struct fetch_part *p, int64_t room)
{
    part_forget(p);
    if (p->pt == NULL)
        return p->err;
    part_view(f, p);
    if (p->view.err != KERR_NONE)
        return p->view.err == KERR_KAFKA_STORAGE_ERROR && f->r->api_version <= 5 ? KERR_NOT_LEADER_OR_FOLLOWER
                                                                                 : p->view.err;
    enum kerr err = partition_epoch_check(&p->view, p->q->current_leader_epoch);
    return err != KERR_NONE ? err : part_read(f, p, room);
}

static void fetch_look(struct fetch *f)
{
    f->bytes = f->throttled = 0;
    f->urgent = f->unready = false;
    for (size_t i = 0; i < f->n_parts; i++) {
        struct fetch_part *p = &f->parts[i];
        p->found = part_look(f, p, f->max_bytes - f->bytes);
        f->bytes += p->span.n;
        f->throttled += p->view.throttled ? p->span.n : 0;
        f->urgent |= p->found != KERR_NONE || p->diverged || p->nearer >= 0;
        f->unready |= p->unready;
    }
}

static void fetch_forget(struct fetch *f)
{
    for (size_t i = 0; i < f->n_parts; i++)
        part_forget(&f->parts[i]);
}

/* ---- the answer ---- */
static bool tells_leader(enum kerr err)
{
    return err == KERR_NOT_LEADER_OR_FOLLOWER || err == KERR_FENCED_LEADER_EPOCH;
}

/* The records of the last look, as memory or as a piece of a file. */
static struct wire_records part_records(const struct fetch *f, struct fetch_part *p)
{
    struct wire_records rec = { .n = (int32_t)p->span.n };
    if (rec.n > 0)
        partition_note_fetched(p->pt, rec.n, f->is_follower);
    if (rec.n == 0 || rec.n > COPY_BYTES_MAX) {
        rec.ext = rec.n == 0 ? NULL : &p->span;
        return rec;
    }
    uint8_t *copy = arena_alloc(&f->r->arena, (size_t)rec.n);
    if (plog_span_read(&p->span, copy) < 0) {
        partition_suspect(p->pt, p->q->fetch_offset);
        p->found = KERR_KAFKA_STORAGE_ERROR;
        rec.n = 0;
    }
    rec.p = copy;
    part_forget(p);
    return rec;
}

static void part_answer(const struct fetch *f, struct fetch_part *p, struct fetch_response_partitions *out)
{
    struct wire_records records = part_records(f, p);
    bool known = p->pt != NULL && p->view.err != KERR_UNKNOWN_TOPIC_OR_PARTITION;
    *out = (struct fetch_response_partitions){
        .partition_index = p->q->partition,
        .error_code = (int16_t)p->found,
        .high_watermark = known ? p->view.hw : -1,
        .last_stable_offset = known ? p->view.lso : -1,
        .log_start_offset = known ? p->view.start_offset : -1,
        .diverging_epoch = { .epoch = -1, .end_offset = -1 },
        .current_leader = { .leader_id = -1, .leader_epoch = -1 },
        .snapshot_id = { .end_offset = -1, .epoch = -1 },
        .n_aborted_transactions = f->q->isolation_level == 1 ? 0 : -1,
        .preferred_read_replica = p->nearer,
        .records = records,
    };
    if (f->r->api_version >= 12 && p->diverged) {
        out->diverging_epoch.epoch = p->diverging_epoch;
        out->diverging_epoch.end_offset = p->diverging_end;
    }
    if (f->r->api_version >= 12 && tells_leader(p->found)) {
        out->current_leader.leader_id = p->view.leader;
        out->current_leader.leader_epoch = p->view.leader_epoch;
    }
}

static void fetch_build(struct fetch *f, struct fetch_response *rsp)
{
    struct arena *a = &f->r->arena;
    struct fetch_part *p = f->parts;
    rsp->n_responses = f->q->n_topics;
    rsp->responses = arena_array(a, (size_t)f->q->n_topics, sizeof *rsp->responses);
    for (int32_t i = 0; i < f->q->n_topics; i++) {
        const struct fetch_request_topics *t = &f->q->topics[i];
        struct fetch_response_responses *out = &rsp->responses[i];
        out->topic = t->topic;
        out->topic_id = t->topic_id;
        out->n_partitions = t->n_partitions;
        out->partitions = arena_array(a, (size_t)t->n_partitions, sizeof *out->partitions);
        for (int32_t k = 0; k < t->n_partitions; k++)
            part_answer(f, p++, &out->partitions[k]);
    }
}

static void fetch_unsent(struct request *r)
{
    fetch_forget(r->op);
}

static void fetch_drop_references(struct fetch *f)
{
    for (size_t i = 0; i < f->n_parts; i++)
        partition_unref(f->parts[i].pt);
}

/* Answers with what the last look found; the spans go along. */
static void fetch_answer(struct fetch *f)
{
    struct fetch_response rsp;
    if (f->throttled > 0)
        throttle_passed(f->r->services->throttle, f->throttled, world_mono_ms(f->r->services->world));
    wire_defaults(&wire_fetch_response, &rsp);
    fetch_build(f, &rsp);
    fetch_drop_references(f);
    request_reply(f->r, &rsp);
}

static void answer_session_error(struct request *r)
{
    struct fetch_response rsp;
    wire_defaults(&wire_fetch_response, &rsp);
    rsp.error_code = KERR_FETCH_SESSION_ID_NOT_FOUND;
    request_reply(r, &rsp);
}

/* ---- waiting ---- */
static void fetch_unwatch(struct fetch *f)
{
    for (size_t i = 0; i < f->n_parts; i++)
        if (f->parts[i].pt != NULL)
            partition_unwatch(f->parts[i].pt, &f->parts[i].watcher);
}

/* False when something moved meanwhile: look again. */
static bool fetch_watch(struct fetch *f)
{
    for (size_t i = 0; i < f->n_parts; i++) {
        struct fetch_part *p = &f->parts[i];
        p->watcher.wake_at = MAX(f->is_follower ? p->view.leo : p->view.hw, p->q->fetch_offset) + 1;
        if (!partition_watch(p->pt, &p->watcher)) {
            fetch_unwatch(f);
            return false;
        }
    }
    return true;
}

static bool fetch_is_enough(const struct fetch *f)
{
    bool full = f->bytes > 0 && f->bytes >= f->max_bytes;
    return f->urgent || f->n_parts == 0 || f->bytes >= f->q->min_bytes || full;
}

static void fetch_make_ready(struct fetch *f);
static void fetch_park(struct fetch *f);

/* Answers, or waits: for records, the time-out, or a worker. */
static void fetch_try(struct fetch *f)
{
    do {
        fetch_look(f);
        if (f->unready) {
            fetch_make_ready(f);
            return;
        }
        if (fetch_is_enough(f) || loop_now_ms(f->r->loop) >= f->until_ms) {
            timer_clear(f->r->loop, &f->timeout);
            loop_cancel(f->r->loop, &f->wake);
            fetch_answer(f);
            return;
        }
        fetch_forget(f);
    } while (!fetch_watch(f));
    fetch_park(f);
}

static void on_wake(struct task *t)
{
    struct fetch *f = container_of(t, struct fetch, wake);
    fetch_unwatch(f);
    fetch_try(f);
}

static void fetch_finish(struct request *r)
{
    struct fetch *f = r->op;
    fetch_unwatch(f);
    timer_clear(r->loop, &f->timeout);
    loop_cancel(r->loop, &f->wake);
    fetch_look(f);
    fetch_answer(f);
}

static void on_timeout(struct timer *t)
{
    fetch_finish(container_of(t, struct fetch, timeout)->r);
}

static void fetch_cancel(struct request *r)
{
    struct fetch *f = r->op;
    fetch_unwatch(f);
    timer_clear(r->loop, &f->timeout);
    loop_cancel(r->loop, &f->wake);
    fetch_drop_references(f);
    request_drop(r);
}

static void fetch_park(struct fetch *f)
{
    f->r->cancel = fetch_cancel;
    f->r->finish = fetch_finish;
    if (!timer_is_set(&f->timeout))
        timer_set(f->r->loop, &f->timeout, f->until_ms);
}

/* ---- the request ---- */
static void part_find(const struct fetch *f, const struct fetch_request_topics *t, struct fetch_part *p)
{
    struct partitions *ps = f->r->services->partitions;
    p->err = KERR_UNKNOWN_TOPIC_ID;
    if (f->r->api_version < 13 || !uuid_is_zero(&t->topic_id))
        p->pt = partitions_get_named(ps, t->topic, &t->topic_id, p->q->partition, &p->err);
}

static void fetch_find_parts(struct fetch *f)
{
    size_t n = 0;
    for (int32_t i = 0; i < f->q->n_topics; i++)
        n += (size_t)f->q->topics[i].n_partitions;
    f->parts = arena_array(&f->r->arena, n, sizeof *f->parts);
    for (int32_t i = 0; i < f->q->n_topics; i++)
        for (int32_t k = 0; k < f->q->topics[i].n_partitions; k++) {
            struct fetch_part *p = &f->parts[f->n_parts++];
            p->q = &f->q->topics[i].partitions[k];
            p->nearer = -1;
            p->watcher = (struct watcher){
                .loop = f->r->loop,
                .task = &f->wake,
                .what = f->is_follower ? WATCH_LEO : WATCH_HW,
                .of_copy = f->may_copy,
            };
            part_find(f, &f->q->topics[i], p);
        }
    KCHECK(f->n_parts == n);
}

/* ---- indexes ---- */
static int part_make_ready(const struct fetch *f, const struct fetch_request_topics *t, struct fetch_part *p)
{
    part_find(f, t, p);
    if (p->pt == NULL)
        return 0;
    struct partition_view v;
    struct plog_span span;
    partition_view(p->pt, &v);
    if (f->may_copy && v.copies)
        v.err = KERR_NONE;
    int64_t limit = f->is_follower ? v.leo : v.hw;
    int rc = v.err != KERR_NONE ? 0 : plog_read(p->pt->log, p->q->fetch_offset, limit, 0, true, &span);
    if (v.err == KERR_NONE && rc == 0)
        plog_span_release(&span);
    partition_unref(p->pt);
    p->pt = NULL;
    return rc == -ERANGE ? 0 : rc; /* the next look says it better */
}

/* On a worker. */
static void make_ready_run(struct job *j)
{
    struct fetch *f = container_of(j, struct fetch, readying);
    for (int32_t i = 0, n = 0; i < f->q->n_topics; i++)
        for (int32_t k = 0; k < f->q->topics[i].n_partitions; k++, n++)
            if (f->parts[n].unready)
                f->parts[n].ready_rc = part_make_ready(f, &f->q->topics[i], &f->parts[n]);
}

static void make_ready_done(struct job *j)
{
    struct fetch *f = container_of(j, struct fetch, readying);
    for (int32_t i = 0, n = 0; i < f->q->n_topics; i++)
        for (int32_t k = 0; k < f->q->topics[i].n_partitions; k++, n++) {
            struct fetch_part *p = &f->parts[n];
            p->tried = p->unready;
            part_find(f, &f->q->topics[i], p);
        }
    fetch_try(f);
}

/* An index is missing or damaged, and has to be made from the log, which a reactor may not wait for. No reference is kept
 * meanwhile: the removal of a partition waits for all of them, perhaps before this in the workers' queue. */
static void fetch_make_ready(struct fetch *f)
{
    for (size_t i = 0; i < f->n_parts; i++) {
        bool unready = f->parts[i].unready;
        part_forget(&f->parts[i]);
        f->parts[i].unready = unready;
        partition_unref(f->parts[i].pt);
        f->parts[i].pt = NULL;
    }
    f->r->cancel = f->r->finish = NULL;
    timer_clear(f->r->loop, &f->timeout);
    loop_cancel(f->r->loop, &f->wake);
    f->readying = (struct job){ .run = make_ready_run, .done = make_ready_done, .loop = f->r->loop };
    workers_submit(f->r->services->workers, &f->readying);
}

static bool names_too_many(const struct fetch_request *q)
{
    int64_t n = 0;
    for (int32_t i = 0; i < q->n_topics; i++)
        n += q->topics[i].n_partitions;
    return n > PARTS_MAX;
}

static bool stands_in(const struct cluster_broker *b, struct kstr rack)
{
    return b->rack != NULL && kstr_eqz(rack, b->rack);
}

/* The other brokers in the consumer's rack, unless this one is there itself. */
static void fetch_find_near(struct fetch *f)
{
    const struct services *s = f->r->services;
    struct cluster_image *img = cluster_image_get(s->cluster);
    const struct cluster_broker *me = cluster_image_broker(img, s->id);
    int32_t *near = arena_array(&f->r->arena, img->n_brokers + 1, sizeof *near);
    bool here = me != NULL && stands_in(me, f->q->rack_id);

    for (size_t i = 0; i < img->n_brokers && !here; i++)
        if (stands_in(&img->brokers[i], f->q->rack_id))
            near[f->n_near++] = img->brokers[i].id;
    cluster_image_put(img);
    f->near = near;
}

void handle_fetch(struct request *r)
{
    const struct fetch_request *q = r->body;
    if (q->session_epoch != 0 && q->session_epoch != -1) {
        answer_session_error(r);
        return;
    }
    if (names_too_many(q)) {
        request_close(r, "a Fetch request names more than 50000 partitions");
        return;
    }
    struct fetch *f = arena_alloc(&r->arena, sizeof *f);
    r->op = f;
    r->unsent = fetch_unsent;
    f->r = r;
    f->q = q;
    f->max_bytes = MIN(MAX(q->max_bytes, 0), RESPONSE_BYTES_MAX);
    f->wake.cb = on_wake;
    f->timeout.cb = on_timeout;
    f->is_follower = r->api_version >= 15 && q->replica_state.replica_id >= 0;
    f->who = (struct partition_follower){ q->replica_state.replica_id, q->replica_state.replica_epoch };
    f->stale = f->is_follower && !cluster_is_alive(r->services->cluster, f->who.broker_id, f->who.broker_epoch);
    f->may_copy = !f->is_follower && q->rack_id.n > 0;
    if (f->may_copy && broker_config_reads_nearest(r->services->config))
        fetch_find_near(f);
    fetch_find_parts(f);

    f->until_ms = time_add(loop_now_ms(r->loop), MAX(q->max_wait_ms, 0));
    fetch_try(f);
}
