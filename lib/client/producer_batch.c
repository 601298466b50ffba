/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One batch of a producer (producer_int.h): filled record by record, sealed into the bytes that are sent, renumbered when
 * sequence numbers begin anew, and cut into smaller ones when a broker finds it too large. Which records belong to which
 * send is kept as spans, so that each send learns of its own. Knows nothing of requests. On the client's loop.
 */
#include <errno.h>

#include "lib/base/check.h"
#include "lib/base/crc32c.h"
#include "lib/client/producer_int.h"
#include "lib/loop/loop.h"
#include "lib/record/iter.h"

enum { HEADERS_MAX = 64, PLAIN_MAX = 1 << 30 };

struct pbatch *batch_new(struct flow *f)
{
    struct pbatch *b = xcalloc(1, sizeof *b);
    b->flow = f;
    b->sequence = -1;
    b->open = true;
    batch_builder_init(&b->build);
    return b;
}

void batch_free(struct pbatch *b)
{
    KCHECK(!b->in_flight && b->n_spans == 0);
    b->flow->p->pending_bytes -= b->plain_bytes;
    batch_builder_done(&b->build);
    rcbuf_unref(b->bytes);
    free(b->spans);
    free(b);
}

size_t batch_bytes(const struct pbatch *b)
{
    return b->bytes != NULL ? b->bytes->n : batch_builder_size(&b->build);
}

static void batch_extend_span(struct pbatch *b, struct producer_send_state *s, int32_t send_first)
{
    struct span *last = b->n_spans > 0 ? &b->spans[b->n_spans - 1] : NULL;
    if (last != NULL && last->s == s) {
        last->n++;
        return;
    }
    if (b->n_spans == b->cap_spans) {
        b->cap_spans = MAX(4, b->cap_spans * 2);
        b->spans = xreallocarray(b->spans, (size_t)b->cap_spans, sizeof *b->spans);
    }
    b->spans[b->n_spans++] = (struct span){ s, 1, send_first };
    s->n_spans++;
}

static void batch_count(struct pbatch *b)
{
    size_t n = batch_builder_size(&b->build);
    b->count = b->build.count;
    b->flow->p->pending_bytes += n - b->plain_bytes;
    b->plain_bytes = n;
}

void batch_add(struct pbatch *b, struct producer_send_state *s, int32_t send_first,
               const struct producer_record *r)
{
    KCHECK(b->bytes == NULL);
    batch_builder_add(&b->build, r->timestamp, r->key, r->value, r->headers, r->n_headers);
    batch_extend_span(b, s, send_first);
    batch_count(b);
}

/* ---- bytes and numbers ---- */
int batch_seal(struct pbatch *b)
{
    struct flow *f = b->flow;
    bool numbered = producer_is_idempotent(f->p);
    struct batch_producer producer = {
        .id = numbered ? f->producer_id : -1,
        .epoch = numbered ? f->epoch : -1,
        .base_sequence = numbered ? f->next_sequence : -1,
    };
    struct bytebuf out = { 0 };
    int rc = batch_builder_finish(&b->build, f->p->cfg.compression, 0, &producer, 0, &out);
    if (rc < 0) {
        bytebuf_done(&out);
        return rc;
    }
    b->bytes = rcbuf_take(&out);
    b->open = false;
    batch_builder_done(&b->build);
    if (numbered) {
        b->sequence = f->next_sequence;
        f->next_sequence = batch_sequence_add(f->next_sequence, b->count);
    }
    return 0;
}

void batch_renumber(struct pbatch *b)
{
    struct flow *f = b->flow;
    struct batch_header h;
    KINVARIANT("P3", !b->in_flight && !b->maybe_written && f->in_flight == 0);
    batch_header_read(b->bytes->p, &h);
    h.producer_id = f->producer_id;
    h.producer_epoch = f->epoch;
    h.base_sequence = b->sequence = f->next_sequence;
    batch_header_write(b->bytes->p, &h);
    h.crc = crc32c(0, b->bytes->p + BATCH_ATTRIBUTES, b->bytes->n - BATCH_ATTRIBUTES);
    batch_header_write(b->bytes->p, &h);
    f->next_sequence = batch_sequence_add(f->next_sequence, b->count);
}

/* ---- cutting ---- */
struct cutter {
    struct pbatch *from, *to;
    int32_t piece;
    bool by_span;
};

static struct pbatch *cutter_target(struct cutter *k, const struct span *sp)
{
    struct pbatch *to = k->to;
    bool other_send = to != NULL && to->spans[to->n_spans - 1].s != sp->s;
    if (to != NULL && to->count < k->piece && !(k->by_span && other_send))
        return to;
    to = k->to = batch_new(k->from->flow);
    to->born_ms = k->from->born_ms;
    to->flush = k->from->flush;
    to->open = false;
    TAILQ_INSERT_BEFORE(k->from, to, entry);
    return to;
}

static void cutter_add(struct cutter *k, const struct span *sp, int32_t nth, const struct record *rec)
{
    struct record_header headers[HEADERS_MAX];
    struct producer_record r = {
        .timestamp = rec->timestamp, .key = rec->key, .value = rec->value, .headers = headers
    };
    struct slice rest = rec->headers;
    while (r.n_headers < HEADERS_MAX &&
           record_header_next(&rest, &headers[r.n_headers].key, &headers[r.n_headers].value) > 0)
        r.n_headers++;
    batch_add(cutter_target(k, sp), sp->s, sp->send_first + nth, &r);
}

static void cutter_run(struct cutter *k, struct slice batch)
{
    struct record_iter it;
    struct record rec;
    record_iter_init(&it);
    int rc = record_iter_start(&it, batch, PLAIN_MAX);
    KCHECK(rc == 0); /* we built it */
    for (int i = 0; i < k->from->n_spans; i++) {
        struct span *sp = &k->from->spans[i];
        for (int32_t j = 0; j < sp->n; j++) {
            rc = record_iter_next(&it, &rec);
            KCHECK(rc == 1);
            if (!sp->s->failed)
                cutter_add(k, sp, j, &rec);
        }
        span_dropped(sp); /* its records are counted in the new batches now */
    }
    record_iter_done(&it);
}

void batch_cut(struct pbatch *b, int32_t piece, bool by_span)
{
    KINVARIANT("P2", !b->in_flight && !b->maybe_written);
    CLEANUP(bytebuf_done) struct bytebuf plain = { 0 };
    struct cutter k = { .from = b, .piece = piece, .by_span = by_span };
    if (b->bytes == NULL) {
        int rc = batch_builder_finish(&b->build, CODEC_NONE, 0, NULL, 0, &plain);
        KCHECK(rc == 0);
    }
    cutter_run(&k, b->bytes != NULL ? slice_of(b->bytes->p, b->bytes->n) : slice_of(plain.p, plain.n));
    b->n_spans = 0;
    TAILQ_REMOVE(&b->flow->queue, b, entry);
    batch_free(b);
}
