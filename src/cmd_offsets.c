/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog offsets: one row a partition with its first and last offset, and the one at a time. Partitions are
 * asked at their leaders, many in one request; one that cannot be asked is told and makes the command fail
 * after the rows of the others. One thread.
 */
#include "lib/base/clock.h"
#include "lib/base/when.h"
#include "src/commands.h"
#include "src/topic_entries.h"

static const struct option_spec options[] = {
    { "at", 0, "TIME", "also the first record from that time on: epoch ms or s, RFC 3339, 2026-11-30, 10:00 (local time), -2h" },
    { "partition", 'p', "N", "this partition only" },
    { NULL, 0, NULL, NULL },
};

static const struct column columns[] = {
    { "topic", "TOPIC", false },
    { "partition", "PARTITION", true },
    { "earliest", "EARLIEST", true },
    { "latest", "LATEST", true },
    { NULL, NULL, false },
};
static const struct column columns_at[] = {
    { "topic", "TOPIC", false },
    { "partition", "PARTITION", true },
    { "earliest", "EARLIEST", true },
    { "latest", "LATEST", true },
    { "at", "AT", true },
    { "time", "TIME", false },
    { NULL, NULL, false },
};

static json_t *part_row(const struct part *p, bool at)
{
    json_t *row = json_object();
    char text[32];

    json_object_set_new(row, "topic", json_kstr(p->topic->name));
    json_object_set_new(row, "partition", json_integer(p->meta->partition_index));
    json_object_set_new(row, "earliest", json_offset(p->start_offset));
    json_object_set_new(row, "latest", json_offset(p->end_offset));
    if (at) {
        json_object_set_new(row, "at", json_offset(p->at_offset));
        json_object_set_new(row, "timestamp", json_offset(p->at_timestamp));
        json_object_set_new(row, "time",
                            p->at_timestamp < 0 ? json_null()
                                                : json_string(time_text(p->at_timestamp, text, sizeof text)));
    }
    if (p->err != KERR_NONE)
        json_object_set_new(row, "error", json_string(kerr_name(p->err)));
    return row;
}

/* Leaves only the partition asked for, in place. */
static size_t parts_select(struct part *parts, size_t n, int64_t partition)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        if (parts[i].meta->partition_index == partition)
            parts[kept++] = parts[i];
    }
    return kept;
}

struct question {
    int64_t partition; /* -1: all */
    bool at;
    int64_t at_ms;
};

static int question_parse(const struct args *a, struct question *ret)
{
    const char *at = args_get(a, "at", NULL);
    int rc = args_get_int(a, "partition", 0, INT32_MAX, -1, &ret->partition);

    ret->at = at != NULL;
    ret->at_ms = 0;
    if (rc != CLI_OK)
        return rc;
    if (ret->at && !time_parse(at, clock_wall_ms(), &ret->at_ms))
        return complain_usage(
            a, "'%s' is no time; write it like 1700000000000, 2026-01-02T03:04:05Z, 2026-01-02, 10:00 or -2h", at);
    return CLI_OK;
}

static int answer(struct session *s, const struct question *q, struct part *parts, size_t n)
{
    const struct args *a = s->args;
    bool ok = parts_ask_ends(s, parts, n);

    if (q->at)
        ok = parts_ask_time(s, parts, n, q->at_ms) && ok;
    json_t *rows = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(rows, part_row(&parts[i], q->at));
    out_rows(stdout, args_has(a, "json"), q->at ? columns_at : columns, rows);
    parts_complain(s, parts, n);
    return ok ? CLI_OK : CLI_FAILED;
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    struct question q;
    struct part *parts;
    bool failed;
    int rc = question_parse(a, &q);

    if (rc != CLI_OK || (rc = session_init(&s, a)) != CLI_OK || (rc = session_connect(&s)) != CLI_OK)
        return rc;
    const struct metadata_response *md = session_metadata(&s, a->operands, a->n_operands);
    if (md == NULL)
        return CLI_FAILED;
    size_t n = parts_list(&s, md, &parts, &failed);
    if (q.partition >= 0) {
        n = parts_select(parts, n, q.partition);
        if (n == 0 && !failed)
            complain(a, "there is no partition %lld", (long long)q.partition);
        failed = failed || n == 0;
    }
    if (n > 0 && answer(&s, &q, parts, n) != CLI_OK)
        failed = true;
    return failed ? CLI_FAILED : CLI_OK;
}

const struct command cmd_offsets = {
    .name = "offsets",
    .operands = "TOPIC...",
    .operands_min = 1,
    .operands_max = -1,
    .summary = "Shows the earliest and latest offset of each partition, and the one at a time",
    .text = "LATEST is the offset the next record gets. AT is '-' when no record is that young.",
    .examples = "klog offsets orders\n"
                "klog offsets orders --at -1h\n"
                "klog offsets orders -p 0 --at 2026-01-02T03:04:05Z --json",
    .options = options,
    .online = true,
    .run = run,
};
