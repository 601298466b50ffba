/* SPDX-License-Identifier: Apache-2.0 */
/* klog reassign status: which partitions are getting other replicas, and how far that is. One thread. */
#include "lib/base/attr.h"
#include "src/commands.h"
#include "src/reassign_entries.h"

static const struct column columns[] = {
    { "topic", "TOPIC", false },   { "partition", "PARTITION", true }, { "replicas", "REPLICAS", false },
    { "adding", "ADDING", false }, { "removing", "REMOVING", false },  { "copied_bytes", "COPIED", true },
    { "bytes", "BYTES", true },    { NULL, NULL, false },
};

static json_t *row_of(struct session *s, const struct moving *m)
{
    int64_t whole = 0, have = 0;

    for (int32_t i = 0; i < m->p->n_replicas; i++)
        whole = MAX(whole, moving_copied(s, m, m->p->replicas[i]));
    for (int32_t i = 0; i < m->p->n_adding_replicas; i++)
        have += MAX(moving_copied(s, m, m->p->adding_replicas[i]), 0);
    return json_pack("{s:s, s:i, s:o, s:o, s:o, s:I, s:I}", "topic", m->topic, "partition", (int)m->p->partition_index, "replicas",
                     json_numbers(m->p->replicas, m->p->n_replicas), "adding",
                     json_numbers(m->p->adding_replicas, m->p->n_adding_replicas), "removing",
                     json_numbers(m->p->removing_replicas, m->p->n_removing_replicas), "copied_bytes", (json_int_t)have, "bytes",
                     (json_int_t)(whole * m->p->n_adding_replicas));
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    struct moves m;
    struct moving *now;
    size_t n;
    int rc = session_init(&s, a);

    if (rc != CLI_OK || (a->n_operands > 0 && (rc = moves_read(&s, a->operands[0], &m)) != CLI_OK) ||
        (rc = session_connect(&s)) != CLI_OK)
        return rc;
    if (moving_list(&s, a->n_operands > 0 ? &m : NULL, &now, &n) != CLI_OK)
        return CLI_FAILED;
    json_t *rows = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(rows, row_of(&s, &now[i]));
    if (n > 0)
        out_rows(stdout, args_has(a, "json"), columns, rows);
    else
        json_decref(rows);
    return CLI_OK;
}

const struct command cmd_reassign_status = {
    .name = "status",
    .operands = "[FILE]",
    .operands_max = 1,
    .summary = "Shows which partitions are getting other replicas, and how far that is",
    .text = "With a plan, only its partitions. Nothing is printed when nothing is going on.",
    .examples = "klog reassign status\n"
                "klog reassign status --json | jq -s 'map(.bytes - .copied_bytes) | add'",
    .online = true,
    .run = run,
};
