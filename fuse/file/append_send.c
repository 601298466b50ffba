/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records on their way to the brokers: cut into batches, given to the producer, counted until each has its answer. What an
 * answer means for a write, a close or an fsync is not known here; they are told when the last of theirs has ended. Owns the
 * bound on the bytes that wait for brokers, and what the partition knows of this mount's own appends. Loop's thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"
#include "fuse/file/append.h"
#include "fuse/file/append_int.h"
#include "fuse/partition/pfile.h"
#include "fuse/partition/watch.h"
#include "fuse/tree/file.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

/* Bytes that wait for brokers; above it writers wait too, or get EAGAIN. */
#define PENDING_BYTES_MAX (64 * 1024 * 1024)
/* A batch of one send; the topic may want smaller ones. */
#define SEND_BYTES_MAX (1024 * 1024)

/* One producer_send. */
struct part {
    struct append *ap;
    struct producer_send send;
    int32_t n, committed;
    int rc;
    bool done;
    STAILQ_ENTRY(part) link;
};

struct writers {
    struct mount *mount;
    struct producer_record *records; /* scratch */
    size_t records_cap;
    size_t sends;                 /* on their way */
    TAILQ_HEAD(, room_wait) full; /* who wait for room */
};

struct writers *writers_new(struct mount *m)
{
    struct writers *w = xcalloc(1, sizeof *w);
    w->mount = m;
    TAILQ_INIT(&w->full);
    return w;
}

void writers_free(struct writers *w)
{
    if (w == NULL)
        return;
    KCHECK(w->sends == 0);
    free(w->records);
    free(w);
}

size_t writers_pending(const struct writers *w)
{
    return w->sends;
}

struct producer_record *append_scratch(struct mount *m, size_t n)
{
    struct writers *w = m->writers;
    if (n > w->records_cap) {
        w->records_cap = MAX(n, MAX(w->records_cap * 2, (size_t)64));
        w->records = xreallocarray(w->records, w->records_cap, sizeof *w->records);
    }
    return w->records;
}

/* ---- room ---- */

bool append_has_room(const struct mount *m)
{
    return producer_pending_bytes(m->producer) <= PENDING_BYTES_MAX;
}

void append_wait_room(struct mount *m, struct room_wait *w)
{
    w->waiting = true;
    TAILQ_INSERT_TAIL(&m->writers->full, w, link);
}

static void writers_make_room(struct writers *w)
{
    struct room_wait *rw;
    while ((rw = TAILQ_FIRST(&w->full)) != NULL && append_has_room(w->mount)) {
        TAILQ_REMOVE(&w->full, rw, link);
        rw->waiting = false;
        rw->cb(rw);
    }
}

/* ---- the life of an append ---- */

void append_begin(struct append *ap, struct handle *h, struct pfile *f, void (*done)(struct append *ap))
{
    ap->mount = h->mount;
    ap->h = handle_ref(h);
    ap->file = pfile_ref(f);
    ap->done = done;
    ap->outstanding = 1;
    STAILQ_INIT(&ap->parts);
    LIST_INSERT_HEAD(&h->app.on_way, ap, way);
}

void append_end(struct append *ap)
{
    struct part *p;
    KCHECK(ap->outstanding == 0);
    while ((p = STAILQ_FIRST(&ap->parts)) != NULL) {
        STAILQ_REMOVE_HEAD(&ap->parts, link);
        free(p);
    }
    LIST_REMOVE(ap, way);
    handle_unref(ap->h);
    pfile_unref(ap->file);
}

void append_hold(struct append *ap)
{
    ap->outstanding++;
}

void append_let_go(struct append *ap)
{
    KCHECK(ap->outstanding > 0);
    if (--ap->outstanding == 0)
        ap->done(ap);
}

static void part_end(struct part *p, int rc, int32_t committed)
{
    struct append *ap = p->ap;
    struct writers *w = ap->mount->writers;
    p->done = true;
    p->rc = rc;
    p->committed = rc == 0 ? p->n : committed;
    w->sends--;
    ap->h->app.sends--;
    ap->file->own_sends--;
    ap->file->own_records += p->committed;
    watch_judge(ap->mount->watch, ap->file);
    append_let_go(ap);
    writers_make_room(w);
}

static void on_sent(struct producer_send *s, int rc, enum kerr err, int64_t offset, int32_t n_committed,
                    const char *text)
{
    struct part *p = s->user;
    struct topic *t = p->ap->file->key.topic;
    (void)offset;
    if (rc != 0)
        log_debug("append to %s/p%d: %s (%s) %s", pfile_topic(p->ap->file), pfile_partition(p->ap->file),
                  strerror(-rc), kerr_name(err), text == NULL ? "" : text);
    if (rc == 0)
        t->sure_ns = clock_mono_ns();
    if (rc == -ENOENT)
        topic_doubt(t);
    if (rc == -EMSGSIZE)
        t->limits_ms = 0; /* the limit is not what it was: ask at the next open */
    part_end(p, rc, n_committed);
}

/* ---- sending ---- */

static void part_send(struct append *ap, const struct producer_record *records, size_t n, bool flush)
{
    struct part *p = xcalloc(1, sizeof *p);
    p->ap = ap;
    p->n = (int32_t)n;
    p->send = (struct producer_send){ .topic = pfile_topic(ap->file),
                                      .topic_id = ap->file->key.topic->id,
                                      .partition = pfile_partition(ap->file),
                                      .records = records,
                                      .n_records = (int32_t)n,
                                      .flush = flush,
                                      .cb = on_sent,
                                      .user = p };
    STAILQ_INSERT_TAIL(&ap->parts, p, link);
    ap->outstanding++;
    ap->mount->writers->sends++;
    ap->h->app.sends++;
    ap->file->own_sends++;
    producer_count_from(ap->mount->producer, mount_deadline_ms(ap->mount) - ap->mount->opt->timeout_ms);
    producer_send(ap->mount->producer, &p->send);
}

void append_send(struct append *ap, const struct producer_record *records, size_t n, bool flush)
{
    size_t max = MIN((size_t)ap->file->key.topic->max_message_bytes, (size_t)SEND_BYTES_MAX);
    size_t from = 0, bytes = BATCH_OVERHEAD;
    for (size_t i = 0; i < n; i++) {
        size_t size = (size_t)records[i].value.n + RECORD_OVERHEAD_MAX;
        if (i > from && bytes + size > max) {
            part_send(ap, records + from, i - from, flush);
            from = i;
            bytes = BATCH_OVERHEAD;
        }
        bytes += size;
    }
    part_send(ap, records + from, n - from, flush);
}

void append_hurry(struct append *ap)
{
    struct part *p;
    STAILQ_FOREACH (p, &ap->parts, link) {
        if (!p->done)
            producer_hurry(ap->mount->producer, &p->send);
    }
}

bool append_withdraw(struct append *ap)
{
    struct part *p;
    bool all = true;
    STAILQ_FOREACH (p, &ap->parts, link) {
        if (!p->done && producer_withdraw(ap->mount->producer, &p->send))
            part_end(p, -EINTR, 0);
        else
            all = false;
    }
    return all;
}

bool append_is_one_batch(const struct append *ap)
{
    return STAILQ_NEXT(STAILQ_FIRST(&ap->parts), link) == NULL;
}

size_t append_committed(const struct append *ap, int *ret_rc)
{
    const struct part *p = STAILQ_FIRST(&ap->parts);
    size_t n = 0;
    for (; p != NULL && p->done && p->rc == 0; p = STAILQ_NEXT(p, link))
        n += (size_t)p->committed;
    bool failed = p != NULL && p->done;
    *ret_rc = failed ? p->rc : 0;
    return failed ? n + (size_t)p->committed : n;
}

/* ---- where to ---- */

/* `any`: the partitions take turns, those without a leader are left out. */
static struct pfile *any_partition(struct handle *h)
{
    struct topic *t = h->node->topic;
    const struct client_topic *ct = client_topic(h->mount->client, t->name);
    for (int32_t i = 0; ct != NULL && i < ct->n_partitions; i++) {
        const struct client_partition *p = &ct->partitions[t->turn++ % (uint32_t)ct->n_partitions];
        if (p->leader >= 0)
            return pfile_get(h->mount, t, p->id);
    }
    return NULL;
}

struct pfile *append_target(struct handle *h)
{
    return h->node->pfile != NULL ? pfile_ref(h->node->pfile) : any_partition(h);
}
