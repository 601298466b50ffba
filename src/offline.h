/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a data directory, read without a broker and without changing anything: names, contents, and one
 * line of JSON or text for each thing found in them. One thread.
 */
#ifndef KLOG_SRC_OFFLINE_H
#define KLOG_SRC_OFFLINE_H

#include "lib/base/buf.h"
#include "lib/record/batch.h"
#include "src/cli.h"
#include "src/out.h"

enum {
    OFFLINE_FILE_MAX = 256 << 20,  /* of a file that is read whole: indexes, snapshots, small files */
    OFFLINE_PLAIN_MAX = 128 << 20, /* of one batch, decompressed; twice what a broker takes */
};

/* "00000000000000000123.timeindex" -> 123, ".timeindex". False for other names. */
bool segment_name_parse(const char *name, int64_t *ret_base, const char **ret_suffix);
const char *base_name(const char *path); /* after the last '/' */
/* The whole file; false after saying why not. */
bool offline_read(const struct args *a, const char *path, struct bytebuf *ret);

/* ---- dump: each prints one kind of file; CLI_OK, or CLI_FAILED after saying what is wrong with it ---- */
struct dump {
    const struct args *args;
    const char *path;
    int64_t base; /* of a segment's file: its first offset, from the name */
    bool json, records;
    int64_t from_offset; /* 0: from the front */
    int64_t limit;       /* batches or entries */
};
int dump_log(const struct dump *d);
int dump_index(const struct dump *d);
int dump_timeindex(const struct dump *d);
int dump_text(const struct dump *d);
int dump_producers(const struct dump *d);
int dump_checkpoint(const struct dump *d);
int dump_flush_mark(const struct dump *d);
int dump_epochs(const struct dump *d);
int dump_meta(const struct dump *d);
int dump_partition_metadata(const struct dump *d);
int dump_start(const struct dump *d);
int dump_registers_journal(const struct dump *d);
int dump_registers_snapshot(const struct dump *d);

/* Members that every dump of a batch has. */
json_t *batch_json(const struct batch_header *h, int64_t at);

#endif
