/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog topic describe: one row a partition, made of Metadata and what its leader says of offsets and size. A
 * partition whose leader does not answer has its row all the same, with the error, and makes the command
 * fail after all rows are printed. One thread.
 */
#include "src/commands.h"
#include "src/topic_entries.h"

static const struct column columns[] = {
    { "topic", "TOPIC", false },  { "partition", "PARTITION", true },
    { "leader", "LEADER", true }, { "replicas", "REPLICAS", false },
    { "isr", "ISR", false },      { "start", "START", true },
    { "end", "END", true },       { "size_bytes", "BYTES", true },
    { NULL, NULL, false },
};

static json_t *part_row(const struct part *p)
{
    const struct metadata_response_partitions *m = p->meta;
    json_t *row = json_object();
    char id[UUID_TEXT_LEN + 1];

    uuid_text(&p->topic->topic_id, id);
    json_object_set_new(row, "topic", json_kstr(p->topic->name));
    json_object_set_new(row, "topic_id", uuid_is_zero(&p->topic->topic_id) ? json_null() : json_string(id));
    json_object_set_new(row, "internal", json_boolean(p->topic->is_internal));
    json_object_set_new(row, "partition", json_integer(m->partition_index));
    json_object_set_new(row, "leader", json_offset(m->leader_id));
    json_object_set_new(row, "leader_epoch", json_offset(m->leader_epoch));
    json_object_set_new(row, "replicas", json_numbers(m->replica_nodes, m->n_replica_nodes));
    json_object_set_new(row, "isr", json_numbers(m->isr_nodes, m->n_isr_nodes));
    json_object_set_new(row, "offline", json_numbers(m->offline_replicas, m->n_offline_replicas));
    json_object_set_new(row, "start", json_offset(p->start_offset));
    json_object_set_new(row, "end", json_offset(p->end_offset));
    json_object_set_new(row, "size_bytes", json_offset(p->size_bytes));
    if (p->err != KERR_NONE)
        json_object_set_new(row, "error", json_string(kerr_name(p->err)));
    return row;
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    struct part *parts;
    bool failed;
    int rc = session_init(&s, a);

    if (rc != CLI_OK || (rc = session_connect(&s)) != CLI_OK)
        return rc;
    const struct metadata_response *md = session_metadata(&s, a->operands, a->n_operands);
    if (md == NULL)
        return CLI_FAILED;

    size_t n = parts_list(&s, md, &parts, &failed);
    if (!parts_ask_ends(&s, parts, n))
        failed = true;
    json_t *rows = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(rows, part_row(&parts[i]));
    if (n > 0)
        out_rows(stdout, args_has(a, "json"), columns, rows);
    else
        json_decref(rows);
    parts_complain(&s, parts, n);
    return failed ? CLI_FAILED : CLI_OK;
}

const struct command cmd_topic_describe = {
    .name = "describe",
    .operands = "[TOPIC...]",
    .operands_max = -1,
    .summary = "Shows each partition: leader, replicas, in-sync replicas, offsets, size",
    .text = "Without a topic, all of them. END is the offset the next record gets; the size is known only to "
            "klog's brokers.",
    .examples = "klog topic describe orders\n"
                "klog topic describe --json | jq 'select(.isr | length < 2)'",
    .online = true,
    .run = run,
};
