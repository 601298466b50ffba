/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Record batches as they come from a producer or a disk. Input: the bytes of a batch, judged once as they are
 * and once with length, magic and checksum made right, so that mutations reach the records. What the
 * validator takes, the iterator must walk to the end, to the same counts; whatever it refuses must do no
 * harm.
 */
#include "tests/fuzz/fuzz.h"

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/record/codec.h"
#include "lib/record/iter.h"

enum { PLAIN_MAX = 1 << 20 };

/* Walks to the end or to the damage: the number of records, or -1; *ret_text as batch_info has it. */
static int64_t walk(struct slice batch, int64_t *ret_text)
{
    struct record_iter it;
    struct record r;
    struct kstr key, value;
    int64_t n = 0;
    int rc;

    *ret_text = 0;
    record_iter_init(&it);
    rc = record_iter_start(&it, batch, PLAIN_MAX);
    while (rc == 0 && (rc = record_iter_next(&it, &r)) == 1) {
        int32_t headers = 0;
        while ((rc = record_header_next(&r.headers, &key, &value)) == 1)
            headers++;
        KCHECK(rc == 0 && headers == r.n_headers);
        *ret_text += (r.value.n > 0 ? r.value.n : 0) + 1;
        n++;
    }
    record_iter_done(&it);
    return rc == 0 ? n : -1;
}

static void judge(uint8_t *p, size_t n)
{
    const struct batch_rules rules = {
        .max_message_bytes = 1 << 20,
        .segment_bytes = 1 << 30,
        .now_ms = 1800000000000,
        .timestamp_before_max_ms = INT64_MAX,
        .timestamp_after_max_ms = INT64_MAX,
        .decompressed_max = PLAIN_MAX,
        .zstd_allowed = true,
    };
    struct batch_info info;
    struct batch_header h;
    int64_t text;

    enum kerr err = batch_validate(p, n, &rules, &info);
    int64_t walked = walk(slice_of(p, n), &text);
    if (err != KERR_NONE) {
        KCHECK(info.bad_text[0] != '\0');
        return;
    }
    KCHECK(walked == info.h.count && text == info.text_bytes);
    KCHECK(batch_check(slice_of(p, n), (int64_t)n, &h) == 0);
    KCHECK(h.max_timestamp == info.max_timestamp);
    KCHECK(batch_validate(p, n, &rules, &info) == KERR_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    CLEANUP(freep) uint8_t *copy = xmalloc(n + 1);

    if (n > 0)
        memcpy(copy, p, n);
    judge(copy, n);
    if (n < BATCH_OVERHEAD || n > INT32_MAX)
        return 0;
    copy[BATCH_MAGIC] = 2;
    put_be32(copy + BATCH_LENGTH, (uint32_t)(n - BATCH_LOG_OVERHEAD));
    put_be32(copy + BATCH_CRC, batch_crc(copy, n));
    judge(copy, n);
    return 0;
}
