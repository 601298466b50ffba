/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of topics and brokers as they stand on a command line: which resource is meant, KEY=VALUE and its relatives, and
 * the change itself by IncrementalAlterConfigs, in one request, so that all of it is done or nothing. A broker's settings
 * are asked of that broker, a topic's of the controller. One thread.
 */
#include "src/config_entries.h"

#include <string.h>

int resource_parse(const struct args *a, struct resource *ret)
{
    int64_t id = -1;

    *ret = (struct resource){ .name = a->operands[1], .broker_id = -1 };
    if (strcmp(a->operands[0], "topic") == 0) {
        ret->type = RESOURCE_TOPIC;
    } else if (strcmp(a->operands[0], "broker") == 0) {
        ret->type = RESOURCE_BROKER;
        if (!args_int(ret->name, 0, INT32_MAX, &id))
            return complain_usage(a, "'%s' is no broker id", ret->name);
        ret->broker_id = (int32_t)id;
    } else {
        return complain_usage(a, "'%s' has no settings; say 'topic' or 'broker'", a->operands[0]);
    }
    return CLI_OK;
}

int resource_find(struct session *s, const struct resource *r)
{
    const struct metadata_response *m = r->broker_id < 0 ? NULL : session_metadata(s, NULL, 0);
    struct bytebuf ids = { 0 };

    if (r->broker_id < 0)
        return CLI_OK;
    if (m == NULL)
        return CLI_FAILED;
    for (int32_t i = 0; i < m->n_brokers; i++) {
        if (m->brokers[i].node_id == r->broker_id) {
            bytebuf_done(&ids);
            return CLI_OK;
        }
        bytebuf_printf(&ids, "%s%d", i > 0 ? ", " : "", m->brokers[i].node_id);
    }
    complain(s->args, "there is no broker %d; there is %s", r->broker_id, bytebuf_cstr(&ids));
    bytebuf_done(&ids);
    return CLI_FAILED;
}

bool config_change_parse(struct session *s, const char *text, struct config_change *ret)
{
    const char *equals = strchr(text, '=');

    if (equals == NULL || equals == text)
        return false;
    const char *end = equals;
    ret->op = CONFIG_OP_SET;
    if (end[-1] == '+' || end[-1] == '-') {
        end--;
        ret->op = *end == '+' ? CONFIG_OP_APPEND : CONFIG_OP_SUBTRACT;
    }
    if (end == text)
        return false;
    ret->key = arena_printf(&s->arena, "%.*s", (int)(end - text), text);
    ret->value = arena_strdup(&s->arena, equals + 1);
    return true;
}

static void request_fill(struct session *s, const struct resource *r, const struct config_change *changes,
                         size_t n, bool dry_run, struct incremental_alter_configs_request *req)
{
    wire_defaults(&wire_incremental_alter_configs_request, req);
    req->validate_only = dry_run;
    req->n_resources = 1;
    req->resources = arena_array(&s->arena, 1, sizeof *req->resources);
    req->resources[0].resource_type = r->type;
    req->resources[0].resource_name = kstr_of(r->name);
    req->resources[0].n_configs = (int32_t)n;
    req->resources[0].configs = arena_array(&s->arena, n, sizeof *req->resources[0].configs);
    for (size_t i = 0; i < n; i++) {
        req->resources[0].configs[i].name = kstr_of(changes[i].key);
        req->resources[0].configs[i].value = kstr_of(changes[i].value);
        req->resources[0].configs[i].config_operation = (int8_t)changes[i].op;
    }
}

int config_apply(struct session *s, const struct resource *r, const struct config_change *changes, size_t n,
                 bool dry_run)
{
    struct incremental_alter_configs_request req;
    int rc = CLI_OK;

    request_fill(s, r, changes, n, dry_run, &req);
    const struct incremental_alter_configs_response *res = session_call(
        s, &(struct session_call){ .target = r->broker_id >= 0 ? TARGET_BROKER : TARGET_CONTROLLER,
                                   .broker_id = r->broker_id,
                                   .request = &wire_incremental_alter_configs_request,
                                   .body = &req });
    if (res == NULL)
        return CLI_FAILED;
    for (int32_t i = 0; i < res->n_responses; i++) {
        if (res->responses[i].error_code == KERR_NONE)
            continue;
        complain_kerr(s->args, r->name, res->responses[i].error_code, res->responses[i].error_message);
        rc = CLI_FAILED;
    }
    return rc;
}
