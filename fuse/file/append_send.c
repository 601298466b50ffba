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
#include "lib/base/murmur2.h"

/* Bytes that wait for brokers; above it writers wait too, or get EAGAIN. */
#define PENDING_BYTES_MAX (64 * 1024 * 1024)
/* A batch of one send; the topic may want smaller ones. */
#define SEND_BYTES_MAX (1024 * 1024)

/* One producer_send. */
struct part {
    struct append *ap;
    struct pfile *file; /* owned reference */
    struct producer_send send;
    size_t first; /* of ap->order, or of the lines */
    int32_t n, committed;
    int rc;
    bool done;
    STAILQ_ENTRY(part) link;
};

struct writers {
    struct mount *mount;
    struct producer_record *records; /* scratch */
    size_t records_cap;
    struct producer_record *sorted; /* by partition */
    size_t sorted_cap;
    struct line_parser parser;
    struct line_record *read;
    size_t read_cap;
    size_t sends;                 /* on their way */
    TAILQ_HEAD(, room_wait) full; /* who wait for room */
};

struct writers *writers_new(struct mount *m)
{
    struct writers *w = xcalloc(1, sizeof *w);
    w->mount = m;
    line_parser_init(&w->parser);
    TAILQ_INIT(&w->full);
    return w;
}

void writers_free(struct writers *w)
{
    if (w == NULL)
        return;
    KCHECK(w->sends == 0);
    line_parser_done(&w->parser);
    free(w->read);
    free(w->sorted);
    free(w->records);
    free(w);
}

size_t writers_pending(const struct writers *w)
{
    return w->sends;
}

/* ---- lines as records ---- */

static void *scratch(void *p, size_t *cap, size_t n, size_t size)
{
    if (n <= *cap)
        return p;
    *cap = MAX(n, MAX(*cap * 2, (size_t)64));
    return xreallocarray(p, *cap, size);
}

static struct kstr line_text(const char *buf, const uint32_t *ends, size_t i, struct kstr first)
{
    return i == 0 ? first : kstr_bytes(buf + ends[i - 1], ends[i] - 1 - ends[i - 1]);
}

/* Headers lie where they stay once all lines are read. */
static void fill_record(const struct writers *w, const struct line_record *l, int64_t now, struct producer_record *ret)
{
    *ret = (struct producer_record){ .timestamp = l->timed ? l->timestamp : now,
                                     .key = l->key,
                                     .value = l->value,
                                     .headers = l->n_headers > 0 ? w->parser.headers + l->first_header : NULL,
                                     .n_headers = l->n_headers };
}

struct append_records append_read(struct handle *h, const char *buf, const uint32_t *ends, size_t n, struct kstr first)
{
    struct writers *w = h->mount->writers;
    enum line_form form = view_form(&h->node->view);
    int64_t now = clock_wall_ms();
    struct append_records ret = { .why = "" };
    w->records = scratch(w->records, &w->records_cap, n, sizeof *w->records);
    w->read = scratch(w->read, &w->read_cap, n, sizeof *w->read);
    if (form != LINE_PLAIN)
        line_parser_begin(&w->parser, (size_t)first.n + ends[n - 1]);
    for (; ret.n < n; ret.n++) {
        struct kstr line = line_text(buf, ends, ret.n, first);
        if (!line_parse(&w->parser, form, line.p, (size_t)line.n, &w->read[ret.n]))
            break;
    }
    for (size_t i = 0; i < ret.n; i++)
        fill_record(w, &w->read[i], now, &w->records[i]);
    ret.records = w->records;
    if (ret.n < n)
        ret.why = w->parser.why;
    return ret;
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
        pfile_unref(p->file);
        free(p);
    }
    free(ap->order);
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
    p->file->own_sends--;
    if (p->file->own_records == 0)
        p->file->own_node = ap->h->node->id;
    else if (p->file->own_node != ap->h->node->id)
        p->file->own_node = 0;
    p->file->own_records += p->committed;
    watch_judge(ap->mount->watch, p->file);
    append_let_go(ap);
    writers_make_room(w);
}

static void on_sent(struct producer_send *s, int rc, enum kerr err, int64_t offset, int32_t n_committed,
                    const char *text)
{
    struct part *p = s->user;
    struct topic *t = p->file->key.topic;
    (void)offset;
    if (rc != 0)
        log_debug("append to %s/p%d: %s (%s) %s", pfile_topic(p->file), pfile_partition(p->file),
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

/* first: see struct part. */
static void part_send(struct append *ap, struct pfile *f, const struct producer_record *records, size_t first, size_t n, bool flush)
{
    struct part *p = xcalloc(1, sizeof *p);
    p->ap = ap;
    p->file = pfile_ref(f);
    p->first = first;
    p->n = (int32_t)n;
    p->send = (struct producer_send){ .topic = pfile_topic(f),
                                      .topic_id = f->key.topic->id,
                                      .partition = pfile_partition(f),
                                      .records = records,
                                      .n_records = (int32_t)n,
                                      .flush = flush,
                                      .cb = on_sent,
                                      .user = p };
    STAILQ_INSERT_TAIL(&ap->parts, p, link);
    ap->outstanding++;
    ap->mount->writers->sends++;
    ap->h->app.sends++;
    f->own_sends++;
    producer_count_from(ap->mount->producer, mount_deadline_ms(ap->mount) - ap->mount->opt->timeout_ms);
    producer_send(ap->mount->producer, &p->send);
}

/* What it takes in a batch, at most. */
static size_t record_size_max(const struct producer_record *r)
{
    size_t size = RECORD_OVERHEAD_MAX + (size_t)MAX(r->value.n, 0) + (size_t)MAX(r->key.n, 0);
    for (int32_t i = 0; i < r->n_headers; i++)
        size += HEADER_OVERHEAD_MAX + (size_t)MAX(r->headers[i].key.n, 0) + (size_t)MAX(r->headers[i].value.n, 0);
    return size;
}

/* Records of one partition, in as few batches as may be. */
static void send_to(struct append *ap, struct pfile *f, const struct producer_record *records, size_t first, size_t n, bool flush)
{
    size_t max = MIN((size_t)f->key.topic->max_message_bytes, (size_t)SEND_BYTES_MAX);
    size_t from = 0, bytes = BATCH_OVERHEAD;
    for (size_t i = 0; i < n; i++) {
        size_t size = record_size_max(&records[i]);
        if (i > from && bytes + size > max) {
            part_send(ap, f, records + from, first + from, i - from, flush);
            from = i;
            bytes = BATCH_OVERHEAD;
        }
        bytes += size;
    }
    part_send(ap, f, records + from, first + from, n - from, flush);
}

/* ---- by key ---- */

/* `any`, where records have keys: each goes where every other client puts it. */
static int32_t partition_of_key(struct kstr key, int32_t n_partitions)
{
    return (int32_t)((murmur2(key.p, (size_t)key.n) & 0x7fffffff) % (uint32_t)n_partitions);
}

struct keyed {
    int32_t partition;
    uint32_t line;
};

static int compare_keyed(const void *x, const void *y)
{
    const struct keyed *a = x, *b = y;
    if (a->partition != b->partition)
        return a->partition < b->partition ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

/* The partition of each record, sorted by it; records without a key stay together in the append's own. */
static struct keyed *sort_by_partition(struct append *ap, const struct producer_record *records, size_t n, int32_t n_partitions)
{
    struct keyed *k = xreallocarray(NULL, n, sizeof *k);
    for (size_t i = 0; i < n; i++) {
        int32_t own = pfile_partition(ap->file);
        k[i] = (struct keyed){ records[i].key.n < 0 ? own : partition_of_key(records[i].key, n_partitions), (uint32_t)i };
    }
    qsort(k, n, sizeof *k, compare_keyed);
    return k;
}

static void send_by_key(struct append *ap, const struct producer_record *records, size_t n, int32_t n_partitions, bool flush)
{
    struct writers *w = ap->mount->writers;
    CLEANUP(freep) struct keyed *k = sort_by_partition(ap, records, n, n_partitions);
    w->sorted = scratch(w->sorted, &w->sorted_cap, n, sizeof *w->sorted);
    ap->order = xreallocarray(NULL, n, sizeof *ap->order);
    ap->n_order = n;
    for (size_t i = 0; i < n; i++) {
        w->sorted[i] = records[k[i].line];
        ap->order[i] = k[i].line;
    }
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && k[j].partition == k[i].partition;)
            j++;
        struct pfile *f = pfile_get(ap->mount, ap->h->node->topic, k[i].partition);
        send_to(ap, f, w->sorted + i, i, j - i, flush);
        pfile_unref(f);
    }
}

static bool any_has_key(const struct producer_record *records, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (records[i].key.n >= 0)
            return true;
    }
    return false;
}

void append_send(struct append *ap, const struct producer_record *records, size_t n, bool flush)
{
    const struct client_topic *ct = client_topic(ap->mount->client, ap->h->node->topic->name);
    if (ap->h->node->pfile == NULL && ct != NULL && ct->n_partitions > 0 && any_has_key(records, n))
        send_by_key(ap, records, n, ct->n_partitions, flush);
    else
        send_to(ap, ap->file, records, 0, n, flush);
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

/* Lines went to several partitions: those before the first that is not known to be committed. */
static size_t committed_by_key(const struct append *ap, int *ret_rc)
{
    const struct part *p;
    CLEANUP(freep) const struct part **of = xcalloc(ap->n_order, sizeof *of); /* NULL: committed */
    size_t n = 0;
    STAILQ_FOREACH (p, &ap->parts, link) {
        for (int32_t i = p->committed; i < p->n; i++)
            of[ap->order[p->first + (size_t)i]] = p;
    }
    while (n < ap->n_order && of[n] == NULL)
        n++;
    *ret_rc = n < ap->n_order && of[n]->done ? of[n]->rc : 0;
    return n;
}

size_t append_committed(const struct append *ap, int *ret_rc)
{
    const struct part *p = STAILQ_FIRST(&ap->parts);
    size_t n = 0;
    if (ap->order != NULL)
        return committed_by_key(ap, ret_rc);
    for (; p != NULL && p->done && p->rc == 0; p = STAILQ_NEXT(p, link))
        n += (size_t)p->committed;
    bool failed = p != NULL && p->done;
    *ret_rc = failed ? p->rc : 0;
    return failed ? n + (size_t)p->committed : n;
}

/* ---- where to ---- */

/* `any`, without a key: the partitions take turns, those without a leader are left out. */
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
