/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog topic create: one CreateTopics request to the controller for all operands. The line is judged before
 * anything is connected. Each topic has its own line or complaint; status 1 when one of them was not made.
 * What passes by itself (a leader that moves) is asked again by the client, see judge(). One thread.
 */
#include "src/commands.h"
#include "src/topic_entries.h"

static const struct option_spec options[] = {
    { "partitions", 'p', "N", "number of partitions; else the broker's num.partitions" },
    { "replicas", 'r', "N", "copies of each partition; else the broker's default.replication.factor" },
    { "replication-factor", 0, "N", "the same, by Kafka's name" },
    { "config", 'c', "KEY=VALUE", "a setting of the topic; may be given more than once" },
    { "if-not-exists", 0, NULL, "a topic that is there already is no failure" },
    { "dry-run", 0, NULL, "let the broker check, create nothing" },
    { NULL, 0, NULL, NULL },
};

static const struct column columns[] = {
    { "topic", "TOPIC", false },
    { "partitions", "PARTITIONS", true },
    { "replicas", "REPLICAS", true },
    { "topic_id", "TOPIC-ID", false },
    { NULL, NULL, false },
};

static enum kerr judge(struct client_call *call, int16_t version, const void *response)
{
    const struct create_topics_response *r = response;

    (void)call, (void)version;
    for (int32_t i = 0; i < r->n_topics; i++) {
        if (kerr_retriable(r->topics[i].error_code))
            return (enum kerr)r->topics[i].error_code;
    }
    return KERR_NONE;
}

static int configs_fill(struct session *s, struct create_topics_request_configs **ret, int32_t *ret_n)
{
    const char *text;
    size_t n = 0;

    while (args_nth(s->args, "config", n) != NULL)
        n++;
    *ret = arena_array(&s->arena, n, sizeof **ret);
    *ret_n = (int32_t)n;
    for (size_t i = 0; (text = args_nth(s->args, "config", i)) != NULL; i++) {
        char *key, *value;
        if (!pair_split(s, text, &key, &value))
            return complain_usage(s->args, "'%s' is not of the form KEY=VALUE", text);
        (*ret)[i] = (struct create_topics_request_configs){ kstr_of(key), kstr_of(value) };
    }
    return CLI_OK;
}

static int request_fill(struct session *s, struct create_topics_request *req)
{
    const struct args *a = s->args;
    struct create_topics_request_configs *configs;
    int32_t n_configs;
    int64_t partitions, replicas;
    const char *kafkas = "replication-factor";
    int rc;

    wire_defaults(&wire_create_topics_request, req);
    if ((rc = args_get_int(a, "partitions", 1, INT32_MAX, -1, &partitions)) != CLI_OK ||
        (rc = args_get_int(a, args_has(a, kafkas) ? kafkas : "replicas", 1, INT16_MAX, -1, &replicas)) != CLI_OK ||
        (rc = configs_fill(s, &configs, &n_configs)) != CLI_OK)
        return rc;
    req->timeout_ms = (int32_t)s->timeout_ms;
    req->validate_only = args_has(a, "dry-run");
    req->n_topics = (int32_t)a->n_operands;
    req->topics = arena_array(&s->arena, a->n_operands, sizeof *req->topics);
    for (size_t i = 0; i < a->n_operands; i++) {
        req->topics[i].name = kstr_of(a->operands[i]);
        req->topics[i].num_partitions = (int32_t)partitions;
        req->topics[i].replication_factor = (int16_t)replicas;
        req->topics[i].configs = configs;
        req->topics[i].n_configs = n_configs;
    }
    return CLI_OK;
}

static json_t *topic_row(const struct create_topics_response_topics *t)
{
    json_t *row = json_object();
    char id[UUID_TEXT_LEN + 1];

    uuid_text(&t->topic_id, id);
    json_object_set_new(row, "topic", json_kstr(t->name));
    json_object_set_new(row, "topic_id", uuid_is_zero(&t->topic_id) ? json_null() : json_string(id));
    json_object_set_new(row, "partitions", json_offset(t->num_partitions));
    json_object_set_new(row, "replicas", json_offset(t->replication_factor));
    return row;
}

static int response_print(const struct session *s, const struct create_topics_response *r)
{
    json_t *rows = json_array();
    int rc = CLI_OK;

    for (int32_t i = 0; i < r->n_topics; i++) {
        const struct create_topics_response_topics *t = &r->topics[i];
        char name[256];
        if (t->error_code == KERR_NONE) {
            json_array_append_new(rows, topic_row(t));
        } else if (t->error_code != KERR_TOPIC_ALREADY_EXISTS || !args_has(s->args, "if-not-exists")) {
            snprintf(name, sizeof name, "%.*s", KSTR_FMT(t->name));
            complain_kerr(s->args, name, t->error_code, t->error_message);
            rc = CLI_FAILED;
        }
    }
    if (json_array_size(rows) > 0)
        out_rows(stdout, args_has(s->args, "json"), columns, rows);
    else
        json_decref(rows);
    return rc;
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    struct create_topics_request req;
    int rc = session_init(&s, a);

    if (rc != CLI_OK || (rc = request_fill(&s, &req)) != CLI_OK || (rc = session_connect(&s)) != CLI_OK)
        return rc;
    const struct create_topics_response *r =
        session_call(&s, &(struct session_call){ .target = TARGET_CONTROLLER,
                                                 .request = &wire_create_topics_request,
                                                 .body = &req,
                                                 .judge = judge });
    return r == NULL ? CLI_FAILED : response_print(&s, r);
}

const struct command cmd_topic_create = {
    .name = "create",
    .operands = "TOPIC...",
    .operands_min = 1,
    .operands_max = -1,
    .summary = "Creates topics",
    .text = "A topic name has 1 to 249 letters, digits, '.', '_' and '-'.",
    .examples = "klog topic create orders\n"
                "klog topic create orders -p 3 -c retention.ms=86400000\n"
                "klog topic create users -c cleanup.policy=compact --if-not-exists",
    .options = options,
    .online = true,
    .run = run,
};
