/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AlterConfigs, which replaces a configuration, and IncrementalAlterConfigs (KIP-339), which changes some of
 * its keys: the same changes, read from two requests.
 */
#include <stdio.h>

#include "daemon/api/admin.h"
#include "daemon/api/api.h"
#include "daemon/api/config_resource.h"
#include "daemon/api/services.h"

enum { ALTER_TIMEOUT_MS = 30000 }; /* the requests have none of their own */

bool config_resource_is_me(const struct request *r, struct kstr name)
{
    char me[16];

    snprintf(me, sizeof me, "%d", r->services->id);
    return kstr_eqz(name, me);
}

const char *const config_logger_levels[4] = { "DEBUG", "INFO", "WARN", "ERROR" };

/* A logger's level is a setting of its broker. */
static enum kerr logger_op(struct cluster_change *ch, int8_t op, struct kstr logger, struct kstr level, const char **ret_why)
{
    const char *const *words = broker_config_find("log.level")->choices;

    *ret_why = "there is one logger here: " ROOT_LOGGER;
    if (!kstr_eqz(logger, ROOT_LOGGER))
        return KERR_INVALID_CONFIG;
    *ret_why = "a logger's level can be set, and nothing else";
    if (op != CONFIG_OP_SET)
        return KERR_INVALID_REQUEST;
    *ret_why = "the level is none of DEBUG, INFO, WARN, ERROR";
    for (size_t i = 0; i < ARRAY_LEN(config_logger_levels); i++) {
        if (kstr_eqz(level, config_logger_levels[i])) {
            cluster_change_add_op(ch, CONFIG_OP_SET, kstr_of("log.level"), kstr_of(words[i]));
            return KERR_NONE;
        }
    }
    return KERR_INVALID_CONFIG;
}

/* Of what has none any setting is unknown, and to take away what is not there is no error. */
static enum kerr no_settings_op(int8_t type, struct kstr name, int8_t op, const char **ret_why)
{
    bool group = type == CONFIG_RESOURCE_GROUP;

    *ret_why = group ? "the name of the group is empty" : "the name of the subscription is empty";
    if (name.n <= 0)
        return KERR_INVALID_REQUEST;
    *ret_why = group ? "groups have no settings here" : "client metrics have no settings here";
    if (op == CONFIG_OP_DELETE)
        return KERR_NONE;
    return group ? KERR_INVALID_CONFIG : KERR_INVALID_REQUEST;
}

/* Takes ch. */
static void alter(struct admin *a, int32_t i, int8_t resource_type, struct cluster_change *ch,
                  bool validate_only)
{
    ch->validate_only = validate_only;
    if (resource_type == CONFIG_RESOURCE_TOPIC) {
        admin_change(a, i, ch, cluster_configure_topic);
    } else if (resource_type == CONFIG_RESOURCE_BROKER) {
        admin_change(a, i, ch, cluster_configure_broker);
    } else {
        cluster_change_free(ch);
        admin_fail(a, i, KERR_INVALID_REQUEST, "only topics (2), brokers (4) and their loggers (8) have a configuration here");
    }
}

static void reply(struct admin *a)
{
    request_reply(a->r, a->rsp);
}

/* ---- the whole configuration ---- */

static void replaced(struct admin *a, int32_t i, enum kerr err, const char *text,
                     const struct cluster_change *ch)
{
    const struct alter_configs_request *q = a->r->body;
    struct alter_configs_response *rsp = a->rsp;
    (void)ch;

    rsp->responses[i] = (struct alter_configs_response_responses){
        .error_code = (int16_t)err,
        .error_message = admin_text(a, err, text),
        .resource_type = q->resources[i].resource_type,
        .resource_name = q->resources[i].resource_name,
    };
}

void handle_alter_configs(struct request *r)
{
    static const struct admin_ops ops = { replaced, reply };
    const struct alter_configs_request *q = r->body;
    struct alter_configs_response *rsp = arena_alloc(&r->arena, sizeof *rsp);

    if (admin_refuses(r, q->n_resources))
        return;
    wire_defaults(&wire_alter_configs_response, rsp);
    rsp->n_responses = q->n_resources;
    rsp->responses = arena_array(&r->arena, (size_t)q->n_resources + 1, sizeof *rsp->responses);
    struct admin *a = admin_begin(r, &ops, rsp, q->n_resources);
    for (int32_t i = 0; i < q->n_resources; i++) {
        const struct alter_configs_request_resources *res = &q->resources[i];
        if (config_resource_has_no_settings(res->resource_type)) {
            const char *why;
            enum kerr err = no_settings_op(res->resource_type, res->resource_name,
                                           res->n_configs > 0 ? CONFIG_OP_SET : CONFIG_OP_DELETE, &why);
            admin_fail(a, i, err, why);
            continue;
        }
        struct cluster_change *ch = cluster_change_new(res->resource_name);
        ch->replace = true;
        for (int32_t j = 0; j < res->n_configs; j++)
            cluster_change_add_op(ch, CONFIG_OP_SET, res->configs[j].name, res->configs[j].value);
        alter(a, i, res->resource_type, ch, q->validate_only);
    }
    admin_wait(a, ALTER_TIMEOUT_MS);
}

/* ---- some keys ---- */

static void changed(struct admin *a, int32_t i, enum kerr err, const char *text,
                    const struct cluster_change *ch)
{
    const struct incremental_alter_configs_request *q = a->r->body;
    struct incremental_alter_configs_response *rsp = a->rsp;
    (void)ch;

    rsp->responses[i] = (struct incremental_alter_configs_response_responses){
        .error_code = (int16_t)err,
        .error_message = admin_text(a, err, text),
        .resource_type = q->resources[i].resource_type,
        .resource_name = q->resources[i].resource_name,
    };
}

static void change_nothing(struct admin *a, int32_t i)
{
    const struct incremental_alter_configs_request *q = a->r->body;
    const struct incremental_alter_configs_request_resources *res = &q->resources[i];
    const char *why = NULL;
    enum kerr err = no_settings_op(res->resource_type, res->resource_name, CONFIG_OP_DELETE, &why);

    for (int32_t j = 0; j < res->n_configs && err == KERR_NONE; j++)
        err = no_settings_op(res->resource_type, res->resource_name, res->configs[j].config_operation, &why);
    admin_fail(a, i, err, why);
}

static void change_one(struct admin *a, int32_t i)
{
    const struct incremental_alter_configs_request *q = a->r->body;
    const struct incremental_alter_configs_request_resources *res = &q->resources[i];
    if (config_resource_has_no_settings(res->resource_type)) {
        change_nothing(a, i);
        return;
    }
    struct cluster_change *ch = cluster_change_new(res->resource_name);
    bool logger = res->resource_type == CONFIG_RESOURCE_LOGGER;

    for (int32_t j = 0; j < res->n_configs; j++) {
        int8_t op = res->configs[j].config_operation;
        const char *why;
        enum kerr err = logger ? logger_op(ch, op, res->configs[j].name, res->configs[j].value, &why) : KERR_NONE;
        if (err != KERR_NONE) {
            cluster_change_free(ch);
            admin_fail(a, i, err, why);
            return;
        }
        if (logger)
            continue;
        if (op < CONFIG_OP_SET || op > CONFIG_OP_SUBTRACT) {
            cluster_change_free(ch);
            admin_fail(a, i, KERR_INVALID_REQUEST, "the operation is none of set, delete, append, subtract");
            return;
        }
        cluster_change_add_op(ch, (enum config_op_kind)op, res->configs[j].name, res->configs[j].value);
    }
    alter(a, i, logger ? CONFIG_RESOURCE_BROKER : res->resource_type, ch, q->validate_only);
}

void handle_incremental_alter_configs(struct request *r)
{
    static const struct admin_ops ops = { changed, reply };
    const struct incremental_alter_configs_request *q = r->body;
    struct incremental_alter_configs_response *rsp = arena_alloc(&r->arena, sizeof *rsp);

    if (admin_refuses(r, q->n_resources))
        return;
    wire_defaults(&wire_incremental_alter_configs_response, rsp);
    rsp->n_responses = q->n_resources;
    rsp->responses = arena_array(&r->arena, (size_t)q->n_resources + 1, sizeof *rsp->responses);
    struct admin *a = admin_begin(r, &ops, rsp, q->n_resources);
    for (int32_t i = 0; i < q->n_resources; i++)
        change_one(a, i);
    admin_wait(a, ALTER_TIMEOUT_MS);
}
