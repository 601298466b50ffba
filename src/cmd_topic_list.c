/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog topic list: the topics of one Metadata answer, sorted by name; internal ones only when asked for.
 * --quiet prints bare names, one a line, for scripts. One thread.
 */
#include <stdlib.h>

#include "src/commands.h"
#include "src/out.h"
#include "src/session.h"

static const struct option_spec options[] = {
    { "quiet", 'q', NULL, "names only" },
    { "internal", 0, NULL, "the brokers' own topics too" },
    { NULL, 0, NULL, NULL },
};

static const struct column columns[] = {
    { "topic", "TOPIC", false },
    { "partitions", "PARTITIONS", true },
    { "replicas", "REPLICAS", true },
    { "topic_id", "TOPIC-ID", false },
    { NULL, NULL, false },
};

static int topic_compare(const void *x, const void *y)
{
    const struct metadata_response_topics *a = x, *b = y;
    int d = memcmp(a->name.p, b->name.p, (size_t)MIN(a->name.n, b->name.n));

    return d != 0 ? d : (a->name.n > b->name.n) - (a->name.n < b->name.n);
}

static json_t *topic_row(const struct metadata_response_topics *t)
{
    json_t *row = json_object();
    char id[UUID_TEXT_LEN + 1];
    int32_t replicas = 0;

    for (int32_t i = 0; i < t->n_partitions; i++)
        replicas = MAX(replicas, t->partitions[i].n_replica_nodes);
    uuid_text(&t->topic_id, id);
    json_object_set_new(row, "topic", json_kstr(t->name));
    json_object_set_new(row, "topic_id", uuid_is_zero(&t->topic_id) ? json_null() : json_string(id));
    json_object_set_new(row, "partitions", json_integer(t->n_partitions));
    json_object_set_new(row, "replicas", json_integer(replicas));
    json_object_set_new(row, "internal", json_boolean(t->is_internal));
    return row;
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    int rc = session_init(&s, a);

    if (rc != CLI_OK || (rc = session_connect(&s)) != CLI_OK)
        return rc;
    const struct metadata_response *md = session_metadata(&s, NULL, 0);
    if (md == NULL)
        return CLI_FAILED;

    json_t *rows = json_array();
    if (md->n_topics > 0)
        qsort(md->topics, (size_t)md->n_topics, sizeof *md->topics, topic_compare);
    for (int32_t i = 0; i < md->n_topics; i++) {
        if (md->topics[i].is_internal && !args_has(a, "internal"))
            continue;
        if (args_has(a, "quiet") && !args_has(a, "json"))
            printf("%.*s\n", KSTR_FMT(md->topics[i].name));
        else
            json_array_append_new(rows, topic_row(&md->topics[i]));
    }
    if (args_has(a, "quiet") && !args_has(a, "json"))
        json_decref(rows);
    else
        out_rows(stdout, args_has(a, "json"), columns, rows);
    return CLI_OK;
}

const struct command cmd_topic_list = {
    .name = "list",
    .operands = "",
    .summary = "Lists the topics",
    .examples = "klog topic list\n"
                "klog topic list -q | xargs klog offsets\n"
                "klog topic list --json | jq -r 'select(.partitions > 1).topic'",
    .options = options,
    .online = true,
    .run = run,
};
