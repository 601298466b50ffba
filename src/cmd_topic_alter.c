/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog topic alter: settings first (all or none of them), then partitions, so that a refused setting leaves
 * the topic as it was. The line is judged before anything is connected; --dry-run lets the broker check both
 * and change neither. One thread.
 */
#include "src/commands.h"
#include "src/config_entries.h"
#include "src/out.h"

static const struct option_spec options[] = {
    { "partitions", 'p', "N", "the new number of partitions; it can only grow" },
    { "config", 'c', "KEY=VALUE", "a setting; may be given more than once" },
    { "delete-config", 0, "KEY", "back to what the broker has; may be given more than once" },
    { "dry-run", 0, NULL, "let the broker check, change nothing" },
    { NULL, 0, NULL, NULL },
};

static enum kerr judge(struct client_call *call, int16_t version, const void *response)
{
    const struct create_partitions_response *r = response;

    (void)call, (void)version;
    for (int32_t i = 0; i < r->n_results; i++) {
        int err = r->results[i].error_code;
        if (kerr_retriable(err) && err != KERR_UNKNOWN_TOPIC_OR_PARTITION)
            return (enum kerr)err;
    }
    return KERR_NONE;
}

static int partitions_grow(struct session *s, const char *topic, int32_t count)
{
    struct create_partitions_request req;
    struct create_partitions_request_topics t = { .name = kstr_of(topic),
                                                  .count = count,
                                                  .n_assignments = -1 };

    wire_defaults(&wire_create_partitions_request, &req);
    req.topics = &t;
    req.n_topics = 1;
    req.timeout_ms = (int32_t)s->timeout_ms;
    req.validate_only = args_has(s->args, "dry-run");
    const struct create_partitions_response *r =
        session_call(s, &(struct session_call){ .target = TARGET_CONTROLLER,
                                                .request = &wire_create_partitions_request,
                                                .body = &req,
                                                .judge = judge });
    if (r == NULL)
        return CLI_FAILED;
    for (int32_t i = 0; i < r->n_results; i++) {
        if (r->results[i].error_code != KERR_NONE) {
            complain_kerr(s->args, topic, r->results[i].error_code, r->results[i].error_message);
            return CLI_FAILED;
        }
    }
    return CLI_OK;
}

static int changes_fill(struct session *s, struct config_change **ret, size_t *ret_n)
{
    const struct args *a = s->args;
    const char *text;
    size_t n = 0;

    *ret = arena_array(&s->arena, a->n_options, sizeof **ret);
    for (size_t i = 0; (text = args_nth(a, "config", i)) != NULL; i++) {
        if (!config_change_parse(s, text, &(*ret)[n++]))
            return complain_usage(a, "'%s' is not of the form KEY=VALUE", text);
    }
    for (size_t i = 0; (text = args_nth(a, "delete-config", i)) != NULL; i++)
        (*ret)[n++] = (struct config_change){ text, NULL, CONFIG_OP_DELETE };
    *ret_n = n;
    return CLI_OK;
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    struct config_change *changes = NULL;
    size_t n = 0;
    int64_t partitions;
    int rc = args_get_int(a, "partitions", 1, INT32_MAX, 0, &partitions);

    if (rc != CLI_OK || (rc = session_init(&s, a)) != CLI_OK ||
        (rc = changes_fill(&s, &changes, &n)) != CLI_OK)
        return rc;
    if (n == 0 && partitions == 0)
        return complain_usage(a, "nothing to change: give --partitions, --config or --delete-config");
    if ((rc = session_connect(&s)) != CLI_OK)
        return rc;

    const struct resource r = { .type = RESOURCE_TOPIC, .name = a->operands[0], .broker_id = -1 };
    if (n > 0)
        rc = config_apply(&s, &r, changes, n, args_has(a, "dry-run"));
    if (rc == CLI_OK && partitions > 0)
        rc = partitions_grow(&s, r.name, (int32_t)partitions);
    if (rc == CLI_OK && args_has(a, "json"))
        out_json(stdout, json_pack("{s:s, s:i}", "topic", r.name, "changed", (int)n + (partitions > 0)));
    return rc;
}

const struct command cmd_topic_alter = {
    .name = "alter",
    .operands = "TOPIC",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Adds partitions to a topic, or changes its settings",
    .text = "Records with the same key may go to another partition once there are more of them.",
    .examples = "klog topic alter orders --partitions 6\n"
                "klog topic alter orders -c retention.ms=3600000 --delete-config segment.bytes",
    .options = options,
    .online = true,
    .run = run,
};
