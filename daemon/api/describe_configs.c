/* SPDX-License-Identifier: Apache-2.0 */
/* DescribeConfigs: every key of a topic or of this broker, from the tables and the image. */
#include <stdio.h>
#include <string.h>

#include "daemon/api/admin.h"
#include "daemon/api/api.h"
#include "daemon/api/config_describe.h"
#include "daemon/api/config_resource.h"
#include "daemon/api/services.h"

enum {
    ON_LOOP_MAX = 64,       /* resources and keys of a request that a reactor answers itself */
    ENTRY_TEXT_BYTES = 128, /* most values are short; addresses and lists of directories are few */
    SYNONYMS_BYTES = 8 * (int)sizeof(struct describe_configs_response_synonyms) + 128,
};

static size_t table_doc_bytes(const struct conf_table *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++)
        n += strlen(t->keys[i].doc);
    return n;
}

static bool is_asked(const struct describe_configs_request_resources *q, const char *name)
{
    for (int32_t i = 0; i < q->n_configuration_keys; i++)
        if (kstr_eqz(q->configuration_keys[i], name))
            return true;
    return q->n_configuration_keys <= 0; /* none are all, as Kafka has it */
}

static struct describe_configs_response_configs *next_entry(struct describe_configs_response_results *out)
{
    return &out->configs[out->n_configs++];
}

static enum kerr describe_topic(struct request *r, const struct cluster_image *img,
                                const struct describe_configs_request_resources *q,
                                struct describe_configs_response_results *out)
{
    const struct describe_configs_request *all = r->body;
    const char *why = NULL;
    enum kerr err = topic_name_check(q->resource_name, &why);
    const struct cluster_topic *t = cluster_image_topic(img, q->resource_name);

    out->error_message = kstr_of(why);
    if (err != KERR_NONE || t == NULL)
        return err != KERR_NONE ? err : KERR_UNKNOWN_TOPIC_OR_PARTITION;
    out->configs = arena_array(&r->arena, topic_config_table.n, sizeof *out->configs);
    for (size_t i = 0; i < topic_config_table.n; i++) {
        const struct conf_key *k = &topic_config_table.keys[i];
        if (is_asked(q, k->name))
            config_describe_topic(&r->arena, k, t->config, img->defaults, all->include_synonyms,
                                  all->include_documentation, next_entry(out));
    }
    return KERR_NONE;
}

static enum kerr describe_broker(struct request *r, const struct cluster_image *img,
                                 const struct describe_configs_request_resources *q,
                                 struct describe_configs_response_results *out)
{
    const struct describe_configs_request *all = r->body;

    if (q->resource_name.n == 0) /* what was set for all brokers: nothing, each has its own file */
        return KERR_NONE;
    if (!config_resource_is_me(r, q->resource_name)) {
        out->error_message =
            kstr_of(arena_printf(&r->arena, "this is broker %d; ask the other one itself", r->services->id));
        return KERR_INVALID_REQUEST;
    }
    out->configs = arena_array(&r->arena, broker_config_table.n, sizeof *out->configs);
    for (size_t i = 0; i < broker_config_table.n; i++) {
        const struct conf_key *k = &broker_config_table.keys[i];
        if (is_asked(q, k->name))
            config_describe_broker(&r->arena, k, img->defaults, all->include_synonyms,
                                   all->include_documentation, next_entry(out));
    }
    return KERR_NONE;
}

static enum kerr describe_logger(struct request *r, const struct cluster_image *img,
                                 const struct describe_configs_request_resources *q,
                                 struct describe_configs_response_results *out)
{
    if (!config_resource_is_me(r, q->resource_name)) {
        out->error_message = kstr_of(arena_printf(&r->arena, "these are the loggers of broker %d", r->services->id));
        return KERR_INVALID_REQUEST;
    }
    out->configs = arena_array(&r->arena, 1, sizeof *out->configs);
    if (is_asked(q, ROOT_LOGGER))
        *next_entry(out) = (struct describe_configs_response_configs){
            .name = kstr_of(ROOT_LOGGER),
            .value = kstr_of(config_logger_levels[img->defaults->config.log_level]),
            .config_source = CONFIG_SOURCE_DYNAMIC_LOGGER,
            .documentation = KSTR_NULL,
        };
    return KERR_NONE;
}

static enum kerr describe_none(const struct describe_configs_request_resources *q,
                               struct describe_configs_response_results *out)
{
    if (q->resource_name.n > 0)
        return KERR_NONE;
    out->error_message = kstr_of(q->resource_type == CONFIG_RESOURCE_GROUP
                                     ? "Group name must not be empty"
                                     : "Client metrics subscription name must not be empty");
    return KERR_INVALID_REQUEST;
}

static const char too_large[] = "the answer would be too large: ask for fewer at once";

/* What one key takes in an answer: its struct, its value, what it is made from. */
static size_t entry_bytes(bool synonyms)
{
    return sizeof(struct describe_configs_response_configs) + ENTRY_TEXT_BYTES + (synonyms ? SYNONYMS_BYTES : 0);
}

static void describe_one(struct request *r, const struct cluster_image *img,
                         const struct describe_configs_request_resources *q,
                         struct describe_configs_response_results *out)
{
    const struct describe_configs_request *all = r->body;
    enum kerr err = KERR_INVALID_REQUEST;

    out->resource_type = q->resource_type;
    out->resource_name = q->resource_name;
    out->error_message = KSTR_NULL;
    const struct conf_table *table =
        q->resource_type == CONFIG_RESOURCE_TOPIC ? &topic_config_table : &broker_config_table;
    size_t docs = all->include_documentation ? table_doc_bytes(table) : 0;
    if (!request_answer_room(r, table->n * entry_bytes(all->include_synonyms) + docs))
        out->error_message = kstr_of(too_large);
    else if (q->resource_type == CONFIG_RESOURCE_TOPIC)
        err = describe_topic(r, img, q, out);
    else if (q->resource_type == CONFIG_RESOURCE_BROKER)
        err = describe_broker(r, img, q, out);
    else if (q->resource_type == CONFIG_RESOURCE_LOGGER)
        err = describe_logger(r, img, q, out);
    else if (config_resource_has_no_settings(q->resource_type))
        err = describe_none(q, out);
    else
        out->error_message = kstr_of("only topics (2), brokers (4) and their loggers (8) have a configuration here");
    out->error_code = (int16_t)err;
    if (err != KERR_NONE && kstr_is_null(out->error_message))
        out->error_message = kstr_of(kerr_text(err));
}

static const void *answer(struct request *r, const char **ret_why)
{
    const struct describe_configs_request *q = r->body;
    struct cluster_image *img = cluster_image_get(r->services->cluster);
    struct describe_configs_response *rsp = arena_alloc(&r->arena, sizeof *rsp);
    (void)ret_why;

    wire_defaults(&wire_describe_configs_response, rsp);
    rsp->n_results = q->n_resources;
    rsp->results = arena_array(&r->arena, (size_t)q->n_resources + 1, sizeof *rsp->results);
    for (int32_t i = 0; i < q->n_resources; i++)
        describe_one(r, img, &q->resources[i], &rsp->results[i]);
    cluster_image_put(img);
    return rsp;
}

void handle_describe_configs(struct request *r)
{
    const struct describe_configs_request *q = r->body;
    int64_t n_keys = 0;

    if (admin_refuses(r, q->n_resources))
        return;
    for (int32_t i = 0; i < q->n_resources; i++)
        n_keys += MAX(q->resources[i].n_configuration_keys, 0);
    request_answer(r, q->n_resources + n_keys > ON_LOOP_MAX,
                   (size_t)q->n_resources * topic_config_table.n * entry_bytes(q->include_synonyms), answer);
}
