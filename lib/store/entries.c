/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See entries.h. An entry is in the file (below n_file) or in the tail (the ENTRIES_TAIL newest, n_file to n);
 * entries_write() appends the tail and empties it. A full tail drops what is added: the index becomes sparser, which
 * costs a longer scan and nothing else. Look-ups go by bisection, reading single entries until one window holds all
 * that are left.
 *
 * Writing and reading may wait for the disk and are done without mu; what they learn is put in place under it.
 */
#include "lib/store/entries.h"

#include <errno.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/base/varint.h"

#define WINDOW_ENTRIES 64 /* below this many, one read fetches them all */

void entries_init(struct entries *e, struct segfile *file, int32_t header_bytes, int32_t entry_bytes)
{
    KCHECK(entry_bytes <= ENTRY_BYTES_MAX);
    *e = (struct entries){ .file = file, .header_bytes = header_bytes, .entry_bytes = entry_bytes };
}

void entries_done(struct entries *e)
{
    free(e->tail);
    segfile_unref(e->file);
    *e = (struct entries){ 0 };
}

void entries_set_count(struct entries *e, int32_t n)
{
    KCHECK(n >= 0);
    e->n = e->n_file = n;
    free(e->tail);
    e->tail = NULL;
}

bool entries_tail_full(const struct entries *e)
{
    return e->n - e->n_file >= ENTRIES_TAIL;
}

void entries_add(struct entries *e, const uint8_t *entry)
{
    if (entries_tail_full(e))
        return;
    if (e->tail == NULL)
        e->tail = xreallocarray(NULL, ENTRIES_TAIL, (size_t)e->entry_bytes);
    memcpy(e->tail + (e->n - e->n_file) * e->entry_bytes, entry, (size_t)e->entry_bytes);
    e->n++;
}

static int64_t entry_at(const struct entries *e, int32_t i)
{
    return e->header_bytes + (int64_t)i * e->entry_bytes;
}

int entries_write(struct entries *e, struct lock *mu)
{
    int32_t n = e->n - e->n_file;

    if (n == 0)
        return 0;
    int rc = segfile_write(e->file, e->tail, (size_t)(n * e->entry_bytes), entry_at(e, e->n_file));
    if (rc < 0)
        return rc;
    if (mu != NULL)
        lock_take(mu);
    e->n_file = e->n;
    if (mu != NULL)
        lock_release(mu);
    return 0;
}

int entries_get(struct entries *e, int32_t i, uint8_t *ret)
{
    KCHECK(i >= 0 && i < e->n);
    if (i >= e->n_file) {
        memcpy(ret, e->tail + (i - e->n_file) * e->entry_bytes, (size_t)e->entry_bytes);
        return 0;
    }
    int64_t got = segfile_read(e->file, ret, (size_t)e->entry_bytes, entry_at(e, i));
    if (got == -ENOENT)
        return -ENODATA;
    return got < 0 ? (int)got : got < e->entry_bytes ? -ENODATA : 0;
}

int entries_at(struct entries *e, struct lock *mu, int32_t i, uint8_t *ret)
{
    lock_take(mu);
    bool in_file = i < e->n_file, is = i < e->n;
    if (is && !in_file)
        memcpy(ret, e->tail + (i - e->n_file) * e->entry_bytes, (size_t)e->entry_bytes);
    lock_release(mu);
    if (!is || !in_file)
        return is;
    int64_t got = segfile_read(e->file, ret, (size_t)e->entry_bytes, entry_at(e, i));
    if (got == -ENOENT)
        return -ENODATA;
    return got < 0 ? (int)got : got < e->entry_bytes ? -ENODATA : 1;
}

int64_t entry_key_get(const uint8_t *entry, struct entry_key key)
{
    return key.width == 4 ? (int64_t)get_be32(entry + key.at) : (int64_t)get_be64(entry + key.at);
}

/* Number of entries among the n at p with key <= target. */
static int32_t count_up_to(const uint8_t *p, int32_t n, int32_t entry_bytes, struct entry_key key,
                           int64_t target)
{
    int32_t low = 0, high = n;

    while (low < high) {
        int32_t mid = low + (high - low) / 2;
        if (entry_key_get(p + mid * entry_bytes, key) <= target)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The file is pinned. */
static int read_pinned(struct entries *e, int32_t i, int32_t n, uint8_t *ret)
{
    size_t want = (size_t)(n * e->entry_bytes);
    int64_t got = io_pread_full(segfile_io(e->file), segfile_fd(e->file), ret, want, entry_at(e, i));

    return got < 0 ? (int)got : (size_t)got < want ? -ENODATA : 0;
}

static int search_pinned(struct entries *e, int32_t n, struct entry_key key, int64_t target, uint8_t *ret,
                         int32_t *ret_i)
{
    uint8_t window[WINDOW_ENTRIES * ENTRY_BYTES_MAX];
    int32_t low = 0, high = n; /* the answer is in [low - 1, high) */

    while (high - low > WINDOW_ENTRIES) {
        int32_t mid = low + (high - low) / 2;
        int rc = read_pinned(e, mid, 1, window);
        if (rc < 0)
            return rc;
        if (entry_key_get(window, key) <= target)
            low = mid;
        else
            high = mid;
    }
    int rc = read_pinned(e, low, high - low, window);
    if (rc < 0)
        return rc;
    int32_t count = count_up_to(window, high - low, e->entry_bytes, key, target);
    if (count == 0)
        return 0;
    memcpy(ret, window + (count - 1) * e->entry_bytes, (size_t)e->entry_bytes);
    *ret_i = low + count - 1;
    return 1;
}

static int floor_in_file(struct entries *e, int32_t n, struct entry_key key, int64_t target, uint8_t *ret,
                         int32_t *ret_i)
{
    if (n == 0)
        return 0;
    int rc = segfile_pin(e->file, false);
    if (rc < 0)
        return rc == -ENOENT ? -ENODATA : rc;
    rc = search_pinned(e, n, key, target, ret, ret_i);
    segfile_unpin(e->file);
    return rc;
}

int entries_floor(struct entries *e, struct lock *mu, struct entry_key key, int64_t target, uint8_t *ret,
                  int32_t *ret_i)
{
    lock_take(mu);
    int32_t n_file = e->n_file;
    int32_t count = count_up_to(e->tail, e->n - n_file, e->entry_bytes, key, target);
    if (count > 0) {
        memcpy(ret, e->tail + (count - 1) * e->entry_bytes, (size_t)e->entry_bytes);
        *ret_i = n_file + count - 1;
    }
    lock_release(mu);
    return count > 0 ? 1 : floor_in_file(e, n_file, key, target, ret, ret_i);
}
