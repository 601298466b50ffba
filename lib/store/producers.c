/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idempotent producers of one partition: the last batches of each, by which a batch is new, a repetition, or out of
 * sequence; the order of use, by which the longest idle one is forgotten; and the snapshot file (docs/DISK-FORMAT.md), of
 * which only a whole and consistent one is taken. Judging changes nothing: producers_add is for what was appended. Pure; the
 * log's mu guards it.
 */
#include "lib/store/producers.h"

#include <uthash.h>

#include "lib/base/check.h"
#include "lib/base/crc32c.h"
#include "lib/base/mem.h"

struct producer {
    int64_t id;
    int16_t epoch;
    int16_t n; /* batches known, oldest first */
    int64_t last_seen_ms;
    struct producer_batch batches[PRODUCER_WINDOW];
    UT_hash_handle hh;
};

/* docs/DISK-FORMAT.md. Never renumber. */
enum {
    PROD_MAGIC = 0,
    PROD_VERSION = 8,
    PROD_CRC = 12, /* of all that follows */
    PROD_OFFSET = 16,
    PROD_N = 24,
    PROD_IDENTITY = 28, /* 0 in version 1 */
    PROD_HEADER_BYTES = 32,
};
enum {
    ENTRY_ID = 0,
    ENTRY_EPOCH = 8,
    ENTRY_N = 10,
    ENTRY_ZERO = 12,
    ENTRY_LAST_SEEN = 16,
    ENTRY_BATCHES = 24,
    BATCH_BYTES = 32,
    ENTRY_BYTES = ENTRY_BATCHES + PRODUCER_WINDOW * BATCH_BYTES,
};
#define MAGIC  "klogprod"
#define FORMAT 2 /* 1 is read too */

static struct producer *find(const struct producers *ps, int64_t id)
{
    struct producer *p;
    HASH_FIND(hh, ps->by_id, &id, sizeof id, p);
    return p;
}

static void forget(struct producers *ps, struct producer *p)
{
    HASH_DEL(ps->by_id, p);
    ps->n--;
    free(p);
}

/* To the end of the order of use. */
static void insert_last(struct producers *ps, struct producer *p)
{
    HASH_ADD(hh, ps->by_id, id, sizeof p->id, p);
    ps->n++;
}

void producers_clear(struct producers *ps)
{
    while (ps->by_id != NULL)
        forget(ps, ps->by_id);
    KCHECK(ps->n == 0);
}

void producers_swap(struct producers *a, struct producers *b)
{
    struct producers tmp = *a;
    *a = *b;
    *b = tmp;
}

static bool is_idempotent(const struct batch_header *h)
{
    return h->producer_id >= 0 && h->base_sequence >= 0 && !batch_is_control(h);
}

static int32_t last_sequence(const struct batch_header *h)
{
    return batch_sequence_add(h->base_sequence, h->last_offset_delta);
}

static const struct producer_batch *find_same(const struct producer *p, const struct batch_header *h)
{
    if (p->epoch != h->producer_epoch)
        return NULL;
    for (int i = p->n - 1; i >= 0; i--) {
        const struct producer_batch *b = &p->batches[i];
        if (b->first_sequence == h->base_sequence && b->last_sequence == last_sequence(h))
            return b;
    }
    return NULL;
}

/* Sequences go round at 2^31: the half of them that comes next is later. */
static bool is_later(int32_t sequence, int32_t than)
{
    uint32_t ahead = ((uint32_t)sequence - (uint32_t)than) & INT32_MAX;
    return ahead > 0 && ahead < 1u << 30;
}

static bool in_sequence(const struct producers *ps, const struct producer *p, const struct batch_header *h)
{
    if (h->producer_epoch > p->epoch)
        return h->base_sequence == 0;
    if (p->n == 0)
        return true;
    const struct producer_batch *last = &p->batches[p->n - 1];
    return h->base_sequence == batch_sequence_add(last->last_sequence, 1) ||
           (last->last_offset < ps->unsure_below && is_later(h->base_sequence, last->last_sequence));
}

enum producer_verdict producers_check(struct producers *ps, const struct batch_header *h, enum kerr *err,
                                      struct producer_batch *ret)
{
    if (h->producer_id < 0)
        return PRODUCER_APPEND;
    struct producer *p = find(ps, h->producer_id);
    if (p == NULL)
        return PRODUCER_APPEND;
    if (h->producer_epoch < p->epoch) {
        *err = KERR_INVALID_PRODUCER_EPOCH;
        return PRODUCER_REFUSED;
    }
    if (!is_idempotent(h))
        return PRODUCER_APPEND;
    const struct producer_batch *same = find_same(p, h);
    if (same != NULL) {
        *ret = *same;
        return PRODUCER_DUPLICATE;
    }
    if (!in_sequence(ps, p, h)) {
        *err = KERR_OUT_OF_ORDER_SEQUENCE_NUMBER;
        return PRODUCER_REFUSED;
    }
    return PRODUCER_APPEND;
}

void producers_add(struct producers *ps, const struct batch_header *h, int64_t now_ms)
{
    if (!is_idempotent(h))
        return;
    struct producer *p = find(ps, h->producer_id);
    if (p != NULL) {
        HASH_DEL(ps->by_id, p);
        ps->n--;
    } else {
        p = xcalloc(1, sizeof *p);
        p->id = h->producer_id;
        p->epoch = h->producer_epoch;
    }
    if (p->epoch != h->producer_epoch)
        p->n = 0;
    p->epoch = h->producer_epoch;
    p->last_seen_ms = now_ms;
    if (p->n == PRODUCER_WINDOW)
        memmove(p->batches, p->batches + 1, sizeof p->batches[0] * (size_t)--p->n);
    p->batches[p->n++] = (struct producer_batch){
        .first_sequence = h->base_sequence,
        .last_sequence = last_sequence(h),
        .base_offset = h->base_offset,
        .last_offset = batch_last_offset(h),
        .timestamp = h->attributes & BATCH_ATTR_LOG_APPEND_TIME ? h->max_timestamp : -1,
    };
    insert_last(ps, p);
    if (ps->n > PRODUCERS_MAX)
        forget(ps, ps->by_id);
}

void producers_expire(struct producers *ps, int64_t before_ms)
{
    while (ps->by_id != NULL && ps->by_id->last_seen_ms < before_ms)
        forget(ps, ps->by_id);
}

static void encode_batch(uint8_t *p, const struct producer_batch *b)
{
    put_be32(p, (uint32_t)b->first_sequence);
    put_be32(p + 4, (uint32_t)b->last_sequence);
    put_be64(p + 8, (uint64_t)b->base_offset);
    put_be64(p + 16, (uint64_t)b->last_offset);
    put_be64(p + 24, (uint64_t)b->timestamp);
}

void producers_each(const struct producers *ps, void (*f)(void *arg, const struct producer_state *p),
                    void *arg)
{
    for (const struct producer *p = ps->by_id; p != NULL; p = p->hh.next) {
        const struct producer_state state = { p->id, p->last_seen_ms, p->epoch, p->n, p->batches };
        f(arg, &state);
    }
}

static void decode_batch(const uint8_t *p, struct producer_batch *ret)
{
    ret->first_sequence = (int32_t)get_be32(p);
    ret->last_sequence = (int32_t)get_be32(p + 4);
    ret->base_offset = (int64_t)get_be64(p + 8);
    ret->last_offset = (int64_t)get_be64(p + 16);
    ret->timestamp = (int64_t)get_be64(p + 24);
}

void producers_encode(const struct producers *ps, int64_t offset, uint32_t identity, struct bytebuf *ret)
{
    size_t start = ret->n;
    uint8_t *head = bytebuf_extend(ret, PROD_HEADER_BYTES);

    memset(head, 0, PROD_HEADER_BYTES);
    memcpy(head + PROD_MAGIC, MAGIC, 8);
    put_be32(head + PROD_VERSION, FORMAT);
    put_be64(head + PROD_OFFSET, (uint64_t)offset);
    put_be32(head + PROD_N, (uint32_t)ps->n);
    put_be32(head + PROD_IDENTITY, identity);
    for (const struct producer *p = ps->by_id; p != NULL; p = p->hh.next) {
        uint8_t *e = bytebuf_extend(ret, ENTRY_BYTES);
        memset(e, 0, ENTRY_BYTES);
        put_be64(e + ENTRY_ID, (uint64_t)p->id);
        put_be16(e + ENTRY_EPOCH, (uint16_t)p->epoch);
        put_be16(e + ENTRY_N, (uint16_t)p->n);
        put_be64(e + ENTRY_LAST_SEEN, (uint64_t)p->last_seen_ms);
        for (int i = 0; i < p->n; i++)
            encode_batch(e + ENTRY_BATCHES + i * BATCH_BYTES, &p->batches[i]);
    }
    uint8_t *all = ret->p + start;
    put_be32(all + PROD_CRC, crc32c(0, all + PROD_OFFSET, ret->n - start - PROD_OFFSET));
}

static bool decode_entry(const uint8_t *e, struct producers *ps)
{
    int16_t n = (int16_t)get_be16(e + ENTRY_N);
    int64_t id = (int64_t)get_be64(e + ENTRY_ID);

    if (n < 0 || n > PRODUCER_WINDOW || id < 0 || find(ps, id) != NULL)
        return false;
    struct producer *p = xcalloc(1, sizeof *p);
    p->id = id;
    p->epoch = (int16_t)get_be16(e + ENTRY_EPOCH);
    p->n = n;
    p->last_seen_ms = (int64_t)get_be64(e + ENTRY_LAST_SEEN);
    for (int i = 0; i < n; i++)
        decode_batch(e + ENTRY_BATCHES + i * BATCH_BYTES, &p->batches[i]);
    insert_last(ps, p);
    return true;
}

bool producers_decode(struct slice s, struct producers *ps, int64_t *ret_offset, uint32_t *ret_identity)
{
    KCHECK(ps->n == 0);
    if (s.n < PROD_HEADER_BYTES || memcmp(s.p, MAGIC, 8) != 0 || get_be32(s.p + PROD_VERSION) < 1 ||
        get_be32(s.p + PROD_VERSION) > FORMAT ||
        get_be32(s.p + PROD_CRC) != crc32c(0, s.p + PROD_OFFSET, s.n - PROD_OFFSET))
        return false;
    uint32_t n = get_be32(s.p + PROD_N);
    if (n > PRODUCERS_MAX || s.n != PROD_HEADER_BYTES + (size_t)n * ENTRY_BYTES)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!decode_entry(s.p + PROD_HEADER_BYTES + (size_t)i * ENTRY_BYTES, ps)) {
            producers_clear(ps);
            return false;
        }
    }
    *ret_offset = (int64_t)get_be64(s.p + PROD_OFFSET);
    *ret_identity = get_be32(s.p + PROD_VERSION) == 1 ? 0 : get_be32(s.p + PROD_IDENTITY);
    return true;
}
