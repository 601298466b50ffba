/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What registers may hold, whoever wrote it. Input: u8 kind, the rest. Kinds: 0 a journal, 1 a snapshot (with the
 * checksums of what is there put right, so that what is behind them is reached), 2 the same without that, 3 the value of a
 * register, read as each kind of value. What is taken keeps the promises of the decoders, and comes back from the
 * encoders as it was; a replica takes any state that was decoded.
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/meta/register_json.h"
#include "daemon/meta/register_tree.h"
#include "daemon/replica/replica.h"
#include "lib/base/check.h"
#include "lib/base/crc32c.h"
#include "lib/base/mem.h"
#include "lib/base/varint.h"

/* ---- files ---- */

static int put(void *arg, const char *path, struct slice value, int64_t version)
{
    return register_tree_put(arg, path, value, version);
}

static int drop(void *arg, const char *path)
{
    return register_tree_drop(arg, path);
}

/* Puts right what can be: the head's checksum, and those of frames that follow each other. */
static void mend_journal(uint8_t *p, size_t n)
{
    if (n < REGISTERS_JOURNAL_HEAD_BYTES)
        return;
    memcpy(p, "KLOGREGJ\0\0\0", 11);
    p[11] = p[11] % 2 + 1;
    size_t at = p[11] == 1 ? 16 : REGISTERS_JOURNAL_HEAD_BYTES;
    uint32_t seed = p[11] == 1 ? 0 : crc32c(0, p + 16, REGISTERS_JOURNAL_HEAD_BYTES - 16);
    put_be32(p + 12, seed);
    while (n - at >= REGISTERS_FRAME_HEAD_BYTES) {
        size_t length = get_be32(p + at + 4) % 256;
        if (length > n - at - REGISTERS_FRAME_HEAD_BYTES)
            return;
        memcpy(p + at, "KRGF", 4);
        put_be32(p + at + 4, (uint32_t)length);
        put_be32(p + at + 8, crc32c(seed, p + at + 12, REGISTERS_FRAME_HEAD_BYTES - 12 + length));
        at += REGISTERS_FRAME_HEAD_BYTES + length;
    }
}

static void mend_snapshot(uint8_t *p, size_t n)
{
    if (n < REGISTERS_SNAPSHOT_HEAD_BYTES)
        return;
    memcpy(p, "KLOGREGS\0\0\0", 11);
    p[11] = p[11] % 2 + 1;
    put_be32(p + 12, crc32c(0, p + 16, n - 16));
}

static void run_file(uint8_t kind, uint8_t *p, size_t n)
{
    struct register_tree t = { 0 };
    struct register_sink sink = { .arg = &t, .put = put, .drop = drop };
    struct register_files f = { 0 };
    char err[512] = "";
    int rc;

    if (kind == 0)
        mend_journal(p, n);
    if (kind == 1)
        mend_snapshot(p, n);
    if (kind == 1 || (kind == 2 && n > 7 && p[7] == 'S'))
        rc = register_snapshot_decode(slice_of(p, n), &sink, &f, err, sizeof err);
    else
        rc = register_journal_decode(slice_of(p, n), REGISTERS_NOT_CLEAN, &sink, &f, err, sizeof err);
    KCHECK(rc == 0 || (rc == -EBADMSG && err[0] != '\0' && strchr(err, '\n') == NULL));
    if (rc == 0)
        KCHECK(f.sequence >= 0 && f.end >= 0 && f.end <= (int64_t)n && f.last <= f.end);
    register_tree_done(&t);
}

/* ---- values ---- */

static void run_partition(struct slice v)
{
    struct partition_register p, back;

    if (partition_register_decode(v, 7, &p) < 0)
        return;
    const struct partition_state *st = &p.st;
    KCHECK(st->n_replicas > 0 && st->n_replicas <= REPLICA_MAX && st->n_isr >= 0 && st->n_isr <= st->n_replicas);
    char *text = partition_register_encode(&p, "1.2.3");
    KCHECK(partition_register_decode(slice_of(text, strlen(text)), 7, &back) == 0);
    KCHECK(memcmp(&p.st, &back.st, sizeof p.st) == 0);
    KCHECK((p.extra == NULL) == (back.extra == NULL) && (p.extra == NULL || strcmp(p.extra, back.extra) == 0));

    for (int32_t me = 0; me < 3; me++) {
        struct replica r;
        replica_init(&r, me, st->leader_be, 10, 5, 3);
        KCHECK(replica_set_state(&r, st) == REPLICA_TAKEN);
        for (int32_t i = 0; i < st->n_replicas; i++)
            replica_follower_fetched(&r, st->replicas[i], 1, 9, 1000);
        replica_agreed(&r);
        if (r.role == REPLICA_LEADER || r.role == REPLICA_FETCHING)
            replica_appended(&r, 20);
        replica_flushed(&r, 20);
        KCHECK(r.hw <= r.leo);
        struct partition_state next = *st;
        next.version++;
        next.leader = me;
        replica_set_state(&r, &next);
    }
    free(text);
    free(p.extra);
    free(back.extra);
}

static void run_value(struct slice v)
{
    struct topic_config_entry *entries;
    struct cluster_broker b;
    struct topic_register topic, back;
    int64_t last;
    size_t n;

    run_partition(v);
    if (topic_register_decode(v, &topic) == 0) {
        char *text = topic_register_encode(&topic);
        KCHECK(!uuid_is_zero(&topic.id) && topic_register_decode(slice_of(text, strlen(text)), &back) == 0);
        KCHECK(back.unfinished_from == topic.unfinished_from && uuid_eq(&back.id, &topic.id));
        free(text);
        free(topic.extra);
        free(back.extra);
    }
    if (config_register_decode(v, &entries, &n) == 0) {
        char *text = config_register_encode(entries, n, NULL);
        config_entries_free(entries, n);
        free(text);
    }
    if (broker_register_decode(v, 1, &b) == 0) {
        KCHECK(b.n_endpoints > 0 && b.endpoints[0].port >= 0 && b.endpoints[0].port <= 65535);
        char *text = broker_register_encode(&b);
        cluster_broker_done(&b);
        free(text);
    }
    if (id_block_decode(v, &last) == 0)
        KCHECK(last >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    if (n < 1)
        return 0;
    CLEANUP(freep) uint8_t *copy = xmalloc(n);
    memcpy(copy, p + 1, n - 1);
    if (p[0] % 4 == 3)
        run_value(slice_of(copy, n - 1));
    else
        run_file(p[0] % 4, copy, n - 1);
    return 0;
}
