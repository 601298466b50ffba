/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory's small files: meta.properties (Kafka's), the clean-shutdown marker, partition.metadata. Pure
 * text and bytes; reading and writing them is one call each.
 */
#ifndef KLOG_STORE_METAFILES_H
#define KLOG_STORE_METAFILES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/uuid.h"

#define META_FILE      "meta.properties"
#define CLEAN_FILE     "clean-shutdown"
#define LOCK_FILE      ".lock"
#define PARTITION_FILE "partition.metadata"
#define SMALL_FILE_MAX 65536

struct meta_properties {
    int32_t version;
    char cluster_id[64];      /* empty: not in the file */
    int32_t broker_id;        /* -1: not in the file */
    struct uuid directory_id; /* zero: not in the file */
};
void meta_encode(const struct meta_properties *m, struct bytebuf *ret);
/* False when it is not such a file, or does not say its version and cluster. Unknown keys are skipped. */
bool meta_decode(struct slice s, struct meta_properties *ret);

#define CLEAN_BYTES 40
/* note: what the daemon wants to find again, -1 nothing. */
void clean_encode(const struct uuid *directory_id, int64_t note, uint8_t ret[CLEAN_BYTES]);
/* Also of version 1, which had no note. */
bool clean_decode(struct slice s, const struct uuid *directory_id, int64_t *ret_note);

void partition_metadata_encode(const struct uuid *topic_id, struct bytebuf *ret);
/* 0; -EBADMSG: it is damaged; -EPROTO: it is whole, but of another version. Kafka's and older files, which have no
 * checksum, are taken without one. */
int partition_metadata_decode(struct slice s, struct uuid *ret);

/* What the files of a partition's directory say of whose they are: of its topic's id and its number. Never 0, which
 * is what files of before that have there. */
uint32_t partition_identity(const struct uuid *topic_id, int32_t partition);

#endif
