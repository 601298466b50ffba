/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog group describe: positions and lag, members, or state, in the columns of Kafka's own tool, so that scripts for that
 * one read these as well. A group that is not there makes the command fail, after the others were shown. What cannot be
 * known (the end of a partition that is gone, and so its lag) is "-", in JSON null. One thread.
 */
#include "lib/base/mem.h"
#include "src/commands.h"
#include "src/group_entries.h"

static const struct option_spec options[] = {
    { "members", 0, NULL, "the members instead, and how many partitions each has" },
    { "state", 0, NULL, "the state instead, and which broker is the coordinator" },
    { "all", 0, NULL, "every group there is" },
    { NULL, 0, NULL, NULL },
};

static const struct column columns_offsets[] = {
    { "group", "GROUP", false },
    { "topic", "TOPIC", false },
    { "partition", "PARTITION", false },
    { "current_offset", "CURRENT-OFFSET", false },
    { "log_end_offset", "LOG-END-OFFSET", false },
    { "lag", "LAG", false },
    { "consumer_id", "CONSUMER-ID", false },
    { "host", "HOST", false },
    { "client_id", "CLIENT-ID", false },
    { NULL, NULL, false },
};
static const struct column columns_members[] = {
    { "group", "GROUP", false },         { "consumer_id", "CONSUMER-ID", false }, { "host", "HOST", false },
    { "client_id", "CLIENT-ID", false }, { "partitions", "#PARTITIONS", false },  { NULL, NULL, false },
};
static const struct column columns_state[] = {
    { "group", "GROUP", false },
    { "coordinator", "COORDINATOR (ID)", false },
    { "assignment_strategy", "ASSIGNMENT-STRATEGY", false },
    { "state", "STATE", false },
    { "members", "#MEMBERS", false },
    { NULL, NULL, false },
};

static json_t *row_of(const struct group *g)
{
    json_t *row = json_object();

    json_object_set_new(row, "group", json_kstr(kstr_of(g->name)));
    return row;
}

static void row_set_member(json_t *row, const struct describe_groups_response_members *m)
{
    json_object_set_new(row, "consumer_id", m != NULL ? json_kstr(m->member_id) : json_null());
    json_object_set_new(row, "host", m != NULL ? json_kstr(m->client_host) : json_null());
    json_object_set_new(row, "client_id", m != NULL ? json_kstr(m->client_id) : json_null());
    if (m != NULL && !kstr_is_null(m->group_instance_id))
        json_object_set_new(row, "instance_id", json_kstr(m->group_instance_id));
}

/* ---- positions ---- */
static json_t *part_row(const struct group *g, const struct group_part *p)
{
    json_t *row = row_of(g);
    int64_t end = p->part != NULL ? p->part->end_offset : -1;

    json_object_set_new(row, "topic", json_kstr(kstr_of(p->topic)));
    json_object_set_new(row, "partition", json_integer(p->partition));
    json_object_set_new(row, "current_offset", json_offset(p->current));
    json_object_set_new(row, "log_end_offset", json_offset(end));
    json_object_set_new(row, "lag",
                        end >= 0 && p->current >= 0 ? json_integer(MAX(end - p->current, 0)) : json_null());
    row_set_member(row, p->member);
    return row;
}

/* A member that was given nothing has a line of its own. */
static json_t *idle_row(const struct group *g, const struct describe_groups_response_members *m)
{
    json_t *row = row_of(g);

    for (const struct column *c = columns_offsets + 1; c->key != NULL; c++)
        json_object_set_new(row, c->key, json_null());
    row_set_member(row, m);
    return row;
}

static bool add_offsets(struct session *s, const struct group *g, json_t *rows)
{
    struct group_part *parts;
    size_t n = group_parts(s, g, &parts);
    bool ok = group_parts_ask(s, parts, n);

    for (size_t i = 0; i < n; i++)
        json_array_append_new(rows, part_row(g, &parts[i]));
    for (int32_t i = 0; i < g->told->n_members; i++) {
        int32_t n_given;
        group_member_assignment(s, &g->told->members[i], &n_given);
        if (n_given == 0)
            json_array_append_new(rows, idle_row(g, &g->told->members[i]));
    }
    return ok;
}

/* ---- members ---- */
static bool add_members(struct session *s, const struct group *g, json_t *rows)
{
    for (int32_t i = 0; i < g->told->n_members; i++) {
        const struct describe_groups_response_members *m = &g->told->members[i];
        json_t *row = row_of(g);
        int32_t n;
        const char *given = group_member_assignment(s, m, &n);
        row_set_member(row, m);
        json_object_set_new(row, "partitions", json_integer(n));
        json_object_set_new(row, "assignment", json_string(given));
        json_array_append_new(rows, row);
    }
    return true;
}

/* ---- state ---- */
static bool add_state(struct session *s, const struct group *g, json_t *rows)
{
    struct find_coordinator_request req;
    json_t *row = row_of(g);

    wire_defaults(&wire_find_coordinator_request, &req);
    req.key = kstr_of(g->name);
    const struct find_coordinator_response *r =
        session_call(s, &(struct session_call){ .target = TARGET_ANY,
                                                .request = &wire_find_coordinator_request,
                                                .body = &req,
                                                .max_version = 3 }); /* the last that asks for one group */
    bool ok = r != NULL && r->error_code == KERR_NONE;
    CLEANUP(freep)
    char *where = ok ? xasprintf("%.*s:%d (%d)", KSTR_FMT(r->host), r->port, r->node_id) : NULL;
    json_object_set_new(row, "coordinator", json_kstr(kstr_of(where)));
    json_object_set_new(row, "assignment_strategy",
                        g->told->protocol_data.n > 0 ? json_kstr(g->told->protocol_data) : json_null());
    json_object_set_new(row, "state", json_kstr(g->told->group_state));
    json_object_set_new(row, "members", json_integer(g->told->n_members));
    json_array_append_new(rows, row);
    return ok;
}

/* ---- the command ---- */
static const char **groups_wanted(struct session *s, size_t *ret_n)
{
    const struct args *a = s->args;
    struct group_listed *listed;

    if (!args_has(a, "all")) {
        *ret_n = a->n_operands;
        return a->operands;
    }
    if (groups_list(s, &listed, ret_n) != CLI_OK)
        return NULL;
    const char **names = arena_array(&s->arena, *ret_n, sizeof *names);
    for (size_t i = 0; i < *ret_n; i++)
        names[i] = listed[i].name;
    return names;
}

static void say_what_is_special(const struct session *s, const struct group *g)
{
    if (kstr_eqz(g->told->group_state, "PreparingRebalance") ||
        kstr_eqz(g->told->group_state, "CompletingRebalance"))
        complain(s->args, "group %s is rebalancing", g->name);
    else if (!group_has_members(g))
        complain(s->args, "group %s has no active members", g->name);
}

static bool describe(struct session *s, const char *name, json_t *rows)
{
    struct group g;

    if (group_describe(s, name, &g) != CLI_OK)
        return false;
    if (!group_is_known(&g)) {
        complain(s->args, "there is no group '%s'", name);
        return false;
    }
    say_what_is_special(s, &g);
    if (args_has(s->args, "members"))
        return add_members(s, &g, rows);
    return args_has(s->args, "state") ? add_state(s, &g, rows) : add_offsets(s, &g, rows);
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    size_t n;
    bool ok = true;

    if (args_has(a, "members") && args_has(a, "state"))
        return complain_usage(a, "--members and --state are two different tables; ask for one");
    if (args_has(a, "all") == (a->n_operands > 0))
        return complain_usage(a, "name groups, or say --all");
    int rc = session_init(&s, a);
    if (rc != CLI_OK || (rc = session_connect(&s)) != CLI_OK)
        return rc;
    const char **names = groups_wanted(&s, &n);
    if (names == NULL)
        return CLI_FAILED;
    json_t *rows = json_array();
    for (size_t i = 0; i < n; i++)
        ok = describe(&s, names[i], rows) && ok;
    const struct column *columns = args_has(a, "members") ? columns_members
                                   : args_has(a, "state") ? columns_state
                                                          : columns_offsets;
    if (json_array_size(rows) > 0 || args_has(a, "json"))
        out_rows(stdout, args_has(a, "json"), columns, rows);
    else
        json_decref(rows);
    return ok ? CLI_OK : CLI_FAILED;
}

const struct command cmd_group_describe = {
    .name = "describe",
    .operands = "[GROUP...]",
    .operands_min = 0,
    .operands_max = -1,
    .summary = "Shows how far groups have read, their members, or their state",
    .text = "The columns are those of kafka-consumer-groups. CURRENT-OFFSET is the next record to read, LAG "
            "how many\n"
            "there are behind it; '-' where there is no such thing.",
    .examples = "klog group describe billing\n"
                "klog group describe billing --members\n"
                "klog group describe --all --state --json",
    .options = options,
    .online = true,
    .run = run,
};
