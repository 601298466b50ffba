/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking where partitions begin and end (rule P2): each time anew, since what another client was told a
 * tenth of a millisecond ago must be seen. All questions of one round of the loop go out together,
 * one request a broker; a partition whose leader has moved is asked for again by itself, with fresh metadata.
 * Loop's thread.
 */
#include <errno.h>
#include <stdlib.h>

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"
#include "fuse/partition/pfile.h"
#include "fuse/partition/stat_call.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

struct ends_asker {
    struct mount *mount;
    struct deferred deferred;   /* sends what was queued in this round */
    STAILQ_HEAD(, pfile) queue; /* with a reference each */
    int calls;                  /* on their way */
};

/* One partition in a request on its way, with those who wait for it. */
struct ends_item {
    struct pfile *file; /* owned reference */
    struct ends_wait_list waiting;
};

struct ends_call {
    struct mount *mount;
    struct client_call call;
    struct klog_stat_request body;
    struct arena arena;
    int64_t sent_ns;
    size_t n;
    struct pfile **files;    /* sorted by stat_build */
    struct ends_item *items; /* as they were queued */
};

static void ends_send(struct mount *m, struct ends_item *items, size_t n, int32_t broker);
static void ends_flush(struct deferred *d);

struct ends_asker *ends_asker_new(struct mount *m)
{
    struct ends_asker *a = xcalloc(1, sizeof *a);
    a->mount = m;
    a->deferred.cb = ends_flush;
    STAILQ_INIT(&a->queue);
    return a;
}

void ends_asker_free(struct ends_asker *a)
{
    if (a == NULL)
        return;
    KCHECK(STAILQ_EMPTY(&a->queue) && a->calls == 0);
    loop_defer_cancel(a->mount->loop, &a->deferred);
    free(a);
}

void ends_set(struct pfile *f, const struct ends *e, int64_t asked_ns)
{
    /* Answers of two connections may cross; what was asked later is right, but a long poll is answered long after it was asked:
     * of one log the larger end is the newer. */
    bool grown = f->ends_known && ends_same_log(&f->ends, e) && e->end_offset > f->ends.end_offset;
    if (f->ends_known && asked_ns < f->ends_ns && !grown)
        return;
    if (!f->ends_known || !ends_same_log(&f->ends, e) || e->end_offset >= f->ends.end_offset)
        f->ends = *e; /* else an answer that was made before, on another connection */
    f->ends_known = true;
    f->ends_ns = MAX(f->ends_ns, asked_ns);
    f->key.topic->sure_ns = MAX(f->key.topic->sure_ns, asked_ns);
    if (f->told_end < 0) { /* nobody has seen anything of it before: all that comes now is news */
        f->told_end = e->end_offset;
        f->own_records = 0;
    }
}

static void item_answer(struct ends_item *it, int rc)
{
    struct ends_wait *w;
    while ((w = STAILQ_FIRST(&it->waiting)) != NULL) {
        STAILQ_REMOVE_HEAD(&it->waiting, link);
        w->cb(w, rc);
    }
}

static void item_done(struct ends_item *it)
{
    pfile_unref(it->file);
    it->file = NULL;
}

/* ---- the answer ---- */

static struct ends_item *item_of(struct ends_call *c, struct pfile *f)
{
    for (size_t i = 0; i < c->n; i++) {
        if (c->items[i].file == f)
            return &c->items[i];
    }
    KCHECK(!"a partition that was asked for");
    return NULL;
}

static void on_partition(void *arg, struct pfile *f, enum kerr err, const struct ends *e)
{
    struct ends_call *c = arg;
    struct ends_item *it = item_of(c, f);
    if (err == KERR_NONE && (f->check != NULL || (c->sent_ns >= f->ends_ns && ends_are_doubtful(f, e)))) {
        ends_check(f, e, c->sent_ns, &it->waiting);
    } else if (err == KERR_NONE) {
        ends_set(f, e, c->sent_ns);
        item_answer(it, 0);
    } else if (kerr_retriable(err) && c->n > 1) {
        struct ends_item *again = xcalloc(1, sizeof *again);
        again->file = pfile_ref(f);
        STAILQ_INIT(&again->waiting);
        STAILQ_CONCAT(&again->waiting, &it->waiting);
        ends_send(c->mount, again, 1, -1);
    } else {
        bool gone = err == KERR_UNKNOWN_TOPIC_OR_PARTITION || err == KERR_UNKNOWN_TOPIC_ID;
        item_answer(it, gone ? -ENOENT : -kerr_errno(err));
    }
}

static void ends_call_free(struct ends_call *c, int rc)
{
    for (size_t i = 0; i < c->n; i++) {
        item_answer(&c->items[i], rc); /* those the answer forgot */
        item_done(&c->items[i]);
    }
    c->mount->ends->calls--;
    arena_done(&c->arena);
    free(c->files);
    free(c->items);
    free(c);
}

static void on_stat(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    struct ends_call *c = call->user;
    const struct klog_stat_response *resp = response;
    (void)version;
    if (rc == 0 && resp->error_code != KERR_NONE)
        rc = -kerr_errno(resp->error_code);
    else if (rc == 0)
        stat_each(resp, c->files, c->n, on_partition, c);
    else if (rc == -ETIMEDOUT && (err == KERR_UNKNOWN_TOPIC_OR_PARTITION || err == KERR_UNKNOWN_TOPIC_ID))
        rc = -ENOENT;
    if (rc == -ENOENT)
        topic_judge(c->files[0]->key.topic);
    ends_call_free(c, rc == 0 ? -EIO : rc);
}

/* Only a request for one partition is tried again as it is: the others may have other leaders by now. */
static enum kerr judge_single(struct client_call *call, int16_t version, const void *response)
{
    const struct klog_stat_response *resp = response;
    (void)call;
    (void)version;
    if (resp->error_code != KERR_NONE || resp->n_topics != 1 || resp->topics[0].n_partitions != 1)
        return resp->error_code;
    return resp->topics[0].partitions[0].error_code;
}

/* ---- the question ---- */

/* Takes the items over. broker -1: the leader, found with fresh metadata if need be. */
static void ends_send(struct mount *m, struct ends_item *items, size_t n, int32_t broker)
{
    struct ends_call *c = xcalloc(1, sizeof *c);
    c->mount = m;
    c->n = n;
    c->items = items;
    c->files = xreallocarray(NULL, n, sizeof *c->files);
    for (size_t i = 0; i < n; i++)
        c->files[i] = items[i].file;
    arena_init(&c->arena);
    stat_build(&c->arena, c->files, n, 0, false, &c->body);
    c->sent_ns = clock_mono_ns();
    c->call = (struct client_call){ .target = broker < 0 ? TARGET_LEADER : TARGET_BROKER,
                                    .broker_id = broker,
                                    .topic = pfile_topic(c->files[0]),
                                    .topic_id = c->files[0]->key.topic->id,
                                    .partition = pfile_partition(c->files[0]),
                                    .request = &wire_klog_stat_request,
                                    .body = &c->body,
                                    .max_version = -1,
                                    .deadline_ms = mount_deadline_ms(m),
                                    .judge = n == 1 ? judge_single : NULL,
                                    .cb = on_stat,
                                    .user = c };
    m->ends->calls++;
    client_call(m->client, &c->call);
}

struct placed {
    int32_t broker;
    struct pfile *file;
};

static int compare_brokers(const void *x, const void *y)
{
    const struct placed *a = x, *b = y;
    return (a->broker > b->broker) - (a->broker < b->broker);
}

static void send_group(struct mount *m, const struct placed *p, size_t n)
{
    struct ends_item *items = xcalloc(n, sizeof *items);
    for (size_t i = 0; i < n; i++) {
        items[i].file = p[i].file;
        STAILQ_INIT(&items[i].waiting);
        STAILQ_CONCAT(&items[i].waiting, &p[i].file->ends_waiting);
    }
    ends_send(m, items, n, n == 1 ? -1 : p[0].broker);
}

static size_t take_queue(struct ends_asker *a, struct placed **ret)
{
    size_t n = 0, cap = 0;
    struct pfile *f;
    *ret = NULL;
    while ((f = STAILQ_FIRST(&a->queue)) != NULL) {
        STAILQ_REMOVE_HEAD(&a->queue, ends_link);
        f->ends_queued = false;
        if (n == cap)
            *ret = xreallocarray(*ret, cap = cap == 0 ? 8 : cap * 2, sizeof **ret);
        const struct client_partition *p = pfile_metadata(f);
        (*ret)[n++] = (struct placed){ p == NULL ? -1 : p->leader, f };
    }
    return n;
}

static void ends_flush(struct deferred *d)
{
    struct ends_asker *a = container_of(d, struct ends_asker, deferred);
    struct placed *all;
    size_t n = take_queue(a, &all);
    qsort(all, n, sizeof *all, compare_brokers);
    for (size_t i = 0, j; i < n; i = j) {
        /* Partitions without a known leader go one by one. */
        for (j = i + 1; j < n && all[i].broker >= 0 && all[j].broker == all[i].broker;)
            j++;
        send_group(a->mount, &all[i], j - i);
    }
    free(all);
}

void ends_ask(struct pfile *f, struct ends_wait *w)
{
    struct ends_asker *a = f->mount->ends;
    STAILQ_INSERT_TAIL(&f->ends_waiting, w, link);
    if (f->ends_queued)
        return;
    f->ends_queued = true;
    pfile_ref(f);
    STAILQ_INSERT_TAIL(&a->queue, f, ends_link);
    loop_defer(a->mount->loop, &a->deferred);
}
