/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog dump: which kind each file is, by its name alone; what prints a kind is in dump_log.c,
 * dump_files.c and dump_registers.c. Files are only read. One that cannot be dumped does not keep the others from being printed;
 * the command fails all the same. No broker is needed, none is asked. One thread.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/store/checkpoint.h"
#include "lib/store/epochs.h"
#include "lib/store/flush_mark.h"
#include "lib/store/metafiles.h"
#include "lib/store/register_files.h"
#include "lib/store/start_mark.h"
#include "src/commands.h"
#include "src/offline.h"

static const struct option_spec options[] = {
    { "records", 'r', NULL, "the records of each batch too" },
    { "from", 0, "OFFSET", "leave out what lies before this offset" },
    { "limit", 'n', "N", "no more than N batches or entries" },
    { NULL, 0, NULL, NULL },
};

/* Which file is what: a segment's by its suffix, the others by their name. */
static const struct kind {
    const char *name;
    bool of_segment;
    int (*dump)(const struct dump *d);
} kinds[] = {
    { ".log", true, dump_log },
    { ".index", true, dump_index },
    { ".timeindex", true, dump_timeindex },
    { ".text", true, dump_text },
    { ".producers", true, dump_producers },
    { START_SUFFIX, true, dump_start },
    { CHECKPOINT_FILE, false, dump_checkpoint },
    { MARK_FILE, false, dump_flush_mark },
    { EPOCHS_FILE, false, dump_epochs },
    { META_FILE, false, dump_meta },
    { PARTITION_FILE, false, dump_partition_metadata },
    { REGISTERS_JOURNAL, false, dump_registers_journal },
    { REGISTERS_SNAPSHOT, false, dump_registers_snapshot },
};

static int dump_one(const struct dump *common, const char *path)
{
    struct dump d = *common;
    const char *name = base_name(path), *suffix = NULL;
    bool segment = segment_name_parse(name, &d.base, &suffix);

    d.path = path;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (kinds[i].of_segment ? segment && strcmp(suffix, kinds[i].name) == 0
                                : strcmp(name, kinds[i].name) == 0)
            return kinds[i].dump(&d);
    }
    if (access(path, F_OK) != 0) {
        complain(d.args, "%s: %s", path, strerror(errno));
        return CLI_FAILED;
    }
    complain(d.args, "%s: not a file that can be dumped; 'klog dump --help' lists them", path);
    return CLI_FAILED;
}

static int run(const struct args *a)
{
    struct dump d = { .args = a, .json = args_has(a, "json"), .records = args_has(a, "records") };
    int rc;

    if ((rc = args_get_int(a, "from", 0, INT64_MAX, 0, &d.from_offset)) != CLI_OK ||
        (rc = args_get_int(a, "limit", 1, INT64_MAX, INT64_MAX, &d.limit)) != CLI_OK)
        return rc;
    for (size_t i = 0; i < a->n_operands; i++) {
        if (a->n_operands > 1 && !d.json)
            printf("%s%s:\n", i > 0 ? "\n" : "", a->operands[i]);
        if (dump_one(&d, a->operands[i]) != CLI_OK)
            rc = CLI_FAILED;
    }
    return rc;
}

const struct command cmd_dump = {
    .name = "dump",
    .operands = "FILE...",
    .operands_min = 1,
    .operands_max = -1,
    .summary = "Prints files of a data directory, without a broker",
    .text = "It knows a segment's .log, .index, .timeindex, .text, .producers and .start, and partition.checkpoint,\n"
            "partition.flushed, leader-epoch-checkpoint, meta.properties, partition.metadata, registers.journal and\n"
            "registers.snapshot; the changes in a journal have a number each, which --from takes. Bytes that are\n"
            "not UTF-8 are escaped as \\xNN, in JSON they are NAME_base64. It fails when a file is damaged, after\n"
            "printing what is whole.",
    .examples = "klog dump /var/lib/klog/orders-0/00000000000000000000.log\n"
                "klog dump --records --from 1000 -n 1 00000000000000000000.log\n"
                "klog dump --records --json *.log | jq -r '.records[].value'",
    .options = options,
    .run = run,
};
