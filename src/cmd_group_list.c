/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog group list: the groups that all brokers together know, as bare names, or with their states. One
 * thread.
 */
#include "src/commands.h"
#include "src/group_entries.h"

static const struct option_spec options[] = {
    { "state", 0, NULL, "show each group's state beside its name" },
    { NULL, 0, NULL, NULL },
};

static const struct column columns[] = {
    { "group", "GROUP", false },
    { "state", "STATE", false },
    { NULL, NULL, false },
};

static json_t *listed_row(const struct group_listed *g)
{
    json_t *row = json_object();

    json_object_set_new(row, "group", json_kstr(kstr_of(g->name)));
    json_object_set_new(row, "state", json_kstr(g->state.n > 0 ? g->state : KSTR_NULL));
    json_object_set_new(row, "protocol_type", json_kstr(g->protocol_type));
    return row;
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    struct group_listed *groups;
    size_t n;
    int rc = session_init(&s, a);

    if (rc != CLI_OK || (rc = session_connect(&s)) != CLI_OK || (rc = groups_list(&s, &groups, &n)) != CLI_OK)
        return rc;
    if (!args_has(a, "state") && !args_has(a, "json")) {
        for (size_t i = 0; i < n; i++)
            puts(groups[i].name);
        return CLI_OK;
    }
    json_t *rows = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(rows, listed_row(&groups[i]));
    out_rows(stdout, args_has(a, "json"), columns, rows);
    return CLI_OK;
}

const struct command cmd_group_list = {
    .name = "list",
    .operands = "",
    .summary = "Lists consumer groups",
    .examples = "klog group list\n"
                "klog group list --state",
    .options = options,
    .online = true,
    .run = run,
};
