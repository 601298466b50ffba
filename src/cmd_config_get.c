/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog config get: one DescribeConfigs request, to the broker itself when its settings are asked for, else
 * to any. A key that does not exist is told, and fails the command, after those that do were printed. One
 * thread.
 */
#include "src/commands.h"
#include "src/config_entries.h"
#include "src/out.h"

static const struct option_spec options[] = {
    { "changed", 0, NULL, "only what differs from the built-in default" },
    { "docs", 0, NULL, "what each key means, too" },
    { NULL, 0, NULL, NULL },
};

static const struct column columns[] = {
    { "key", "KEY", false }, { "value", "VALUE", false }, { "source", "FROM", false }, { NULL, NULL, false }
};
static const struct column columns_docs[] = {
    { "key", "KEY", false },      { "value", "VALUE", false }, { "source", "FROM", false },
    { "docs", "MEANING", false }, { NULL, NULL, false },
};

enum { SOURCE_DEFAULT = 5 };

static const char *source_name(int source)
{
    static const char *const names[] = {
        [1] = "topic", [2] = "broker", [3] = "cluster", [4] = "file", [SOURCE_DEFAULT] = "default",
    };

    return source > 0 && source < (int)ARRAY_LEN(names) ? names[source] : "unknown";
}

static void request_fill(struct session *s, const struct resource *r, struct describe_configs_request *req)
{
    const struct args *a = s->args;
    size_t n_keys = a->n_operands - 2;

    wire_defaults(&wire_describe_configs_request, req);
    req->include_documentation = args_has(a, "docs");
    req->n_resources = 1;
    req->resources = arena_array(&s->arena, 1, sizeof *req->resources);
    req->resources[0].resource_type = r->type;
    req->resources[0].resource_name = kstr_of(r->name);
    req->resources[0].n_configuration_keys = n_keys == 0 ? -1 : (int32_t)n_keys;
    req->resources[0].configuration_keys =
        arena_array(&s->arena, n_keys, sizeof *req->resources[0].configuration_keys);
    for (size_t i = 0; i < n_keys; i++)
        req->resources[0].configuration_keys[i] = kstr_of(a->operands[i + 2]);
}

static json_t *config_row(const struct describe_configs_response_configs *c, bool docs)
{
    json_t *row = json_object();

    json_object_set_new(row, "key", json_kstr(c->name));
    json_object_set_new(row, "value", c->is_sensitive ? json_null() : json_kstr(c->value));
    json_object_set_new(row, "source", json_string(source_name(c->config_source)));
    json_object_set_new(row, "read_only", json_boolean(c->read_only));
    if (c->is_sensitive)
        json_object_set_new(row, "sensitive", json_true());
    if (docs)
        json_object_set_new(row, "docs", json_kstr(c->documentation));
    return row;
}

static bool key_was_answered(const struct describe_configs_response_results *r, const char *key)
{
    for (int32_t i = 0; i < r->n_configs; i++) {
        if (kstr_eqz(r->configs[i].name, key))
            return true;
    }
    return false;
}

static int result_print(const struct args *a, const struct describe_configs_response_results *r)
{
    json_t *rows = json_array();
    int rc = CLI_OK;

    for (int32_t i = 0; i < r->n_configs; i++) {
        if (!args_has(a, "changed") || r->configs[i].config_source != SOURCE_DEFAULT)
            json_array_append_new(rows, config_row(&r->configs[i], args_has(a, "docs")));
    }
    out_rows(stdout, args_has(a, "json"), args_has(a, "docs") ? columns_docs : columns, rows);
    for (size_t i = 2; i < a->n_operands; i++) {
        if (!key_was_answered(r, a->operands[i])) {
            complain(a, "there is no key '%s'", a->operands[i]);
            rc = CLI_FAILED;
        }
    }
    return rc;
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    struct describe_configs_request req;
    struct resource r;
    int rc = resource_parse(a, &r);

    if (rc != CLI_OK || (rc = session_init(&s, a)) != CLI_OK || (rc = session_connect(&s)) != CLI_OK ||
        (rc = resource_find(&s, &r)) != CLI_OK)
        return rc;
    request_fill(&s, &r, &req);
    const struct describe_configs_response *res =
        session_call(&s, &(struct session_call){ .target = r.broker_id >= 0 ? TARGET_BROKER : TARGET_ANY,
                                                 .broker_id = r.broker_id,
                                                 .request = &wire_describe_configs_request,
                                                 .body = &req });
    if (res == NULL)
        return CLI_FAILED;
    if (res->n_results != 1 || res->results[0].error_code != KERR_NONE) {
        int err = res->n_results == 1 ? res->results[0].error_code : KERR_UNKNOWN_SERVER_ERROR;
        complain_kerr(a, r.name, err, res->n_results == 1 ? res->results[0].error_message : KSTR_NULL);
        return CLI_FAILED;
    }
    return result_print(a, &res->results[0]);
}

const struct command cmd_config_get = {
    .name = "get",
    .operands = "topic|broker NAME [KEY...]",
    .operands_min = 2,
    .operands_max = -1,
    .summary = "Shows the settings of a topic or a broker",
    .text = "FROM says where a value comes from: topic, broker, cluster, file (the broker's), default.",
    .examples = "klog config get topic orders\n"
                "klog config get topic orders retention.ms --json | jq -r .value\n"
                "klog config get broker 1 --changed",
    .options = options,
    .online = true,
    .run = run,
};
