/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leader epochs, as Kafka's LeaderEpochFileCache has them: an epoch is only noted when it is newer than all that are known,
 * truncation at the end forgets what begins there, truncation at the start moves the epoch that reaches over it. Below: its
 * file, of which only a whole and rising list is taken. Pure; the log's mu guards it.
 */
#include "lib/store/epochs.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"

#define EPOCHS_MAX 1000000 /* lines a file may claim */

void epochs_done(struct epochs *e)
{
    free(e->v);
    *e = (struct epochs){ 0 };
}

int32_t epochs_latest(const struct epochs *e)
{
    return e->n == 0 ? -1 : e->v[e->n - 1].epoch;
}

static void push(struct epochs *e, int32_t epoch, int64_t start)
{
    if (e->n == e->cap) {
        e->cap = e->cap == 0 ? 4 : e->cap * 2;
        e->v = xreallocarray(e->v, (size_t)e->cap, sizeof *e->v);
    }
    e->v[e->n++] = (struct epoch_entry){ epoch, start };
}

bool epochs_assign(struct epochs *e, int32_t epoch, int64_t start)
{
    if (epoch < 0 || epoch <= epochs_latest(e))
        return false;
    epochs_truncate_end(e, start);
    push(e, epoch, start);
    return true;
}

void epochs_copy(const struct epochs *from, struct epochs *ret)
{
    for (int32_t i = 0; i < from->n; i++)
        push(ret, from->v[i].epoch, from->v[i].start);
}

bool epochs_truncate_end(struct epochs *e, int64_t end)
{
    int32_t before = e->n;

    while (e->n > 0 && e->v[e->n - 1].start >= end)
        e->n--;
    return e->n != before;
}

/* The epoch that reaches over the new start stays, and begins there. */
bool epochs_truncate_start(struct epochs *e, int64_t start)
{
    int32_t gone = 0;

    while (gone + 1 < e->n && e->v[gone + 1].start <= start)
        gone++;
    if (gone > 0) {
        memmove(e->v, e->v + gone, (size_t)(e->n - gone) * sizeof *e->v);
        e->n -= gone;
    }
    if (e->n > 0 && e->v[0].start < start) {
        e->v[0].start = start;
        return true;
    }
    return gone > 0;
}

/*
 * As Kafka's LeaderEpochFileCache.endOffsetFor. What an epoch older than all that are kept wrote is gone: the first
 * one kept follows it, whoever asks has nothing to cut off. Of an epoch newer than the latest nothing is known.
 */
void epochs_end(const struct epochs *e, int32_t epoch, int64_t log_end, int32_t *ret_epoch, int64_t *ret_end)
{
    int32_t i = e->n; /* entries up to `epoch` */

    while (i > 0 && e->v[i - 1].epoch > epoch)
        i--;
    *ret_epoch = *ret_end = -1;
    if (epoch < 0 || epoch > epochs_latest(e))
        return;
    *ret_epoch = i == 0 ? epoch : e->v[i - 1].epoch;
    *ret_end = i == e->n ? log_end : e->v[i].start;
}

int32_t epochs_at(const struct epochs *e, int64_t offset)
{
    int32_t i = e->n;

    while (i > 0 && e->v[i - 1].start > offset)
        i--;
    return i == 0 ? -1 : e->v[i - 1].epoch;
}

/* Kafka's text: a version, a count, then "epoch start" a line. */
void epochs_encode(const struct epochs *e, struct bytebuf *ret)
{
    bytebuf_printf(ret, "0\n%" PRId32 "\n", e->n);
    for (int32_t i = 0; i < e->n; i++)
        bytebuf_printf(ret, "%" PRId32 " %" PRId64 "\n", e->v[i].epoch, e->v[i].start);
}

/* A decimal number and the character after it. */
static bool take_number(struct slice *s, int64_t max, char end, int64_t *ret)
{
    int64_t v = 0;
    size_t i = 0;

    for (; i < s->n && s->p[i] >= '0' && s->p[i] <= '9'; i++) {
        int64_t digit = s->p[i] - '0';
        if (digit > max || v > (max - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    if (i == 0 || i == s->n || s->p[i] != (uint8_t)end)
        return false;
    *s = slice_of(s->p + i + 1, s->n - i - 1);
    *ret = v;
    return true;
}

static bool decode_entries(struct slice *s, int64_t n, struct epochs *ret)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t epoch, start;
        if (!take_number(s, INT32_MAX, ' ', &epoch) || !take_number(s, INT64_MAX, '\n', &start))
            return false;
        if (ret->n > 0 && (epoch <= ret->v[ret->n - 1].epoch || start < ret->v[ret->n - 1].start))
            return false;
        push(ret, (int32_t)epoch, start);
    }
    return s->n == 0;
}

bool epochs_decode(struct slice s, struct epochs *ret)
{
    int64_t version, n;

    epochs_done(ret);
    if (take_number(&s, 0, '\n', &version) && take_number(&s, EPOCHS_MAX, '\n', &n) &&
        decode_entries(&s, n, ret))
        return true;
    epochs_done(ret);
    return false;
}
