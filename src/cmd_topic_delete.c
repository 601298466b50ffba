/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog topic delete: one DeleteTopics request to the controller for all operands, by name, therefore in a
 * version that has names. Each topic has its own line or complaint; status 1 when one of them was not
 * deleted, but for unknown ones with --if-exists. One thread.
 */
#include "src/commands.h"
#include "src/out.h"
#include "src/session.h"

static const struct option_spec options[] = {
    { "if-exists", 0, NULL, "a topic that is not there is no failure" },
    { NULL, 0, NULL, NULL },
};

static enum kerr judge(struct client_call *call, int16_t version, const void *response)
{
    const struct delete_topics_response *r = response;

    (void)call, (void)version;
    for (int32_t i = 0; i < r->n_responses; i++) {
        int err = r->responses[i].error_code;
        if (kerr_retriable(err) && err != KERR_UNKNOWN_TOPIC_OR_PARTITION)
            return (enum kerr)err;
    }
    return KERR_NONE;
}

/* Up to version 5 topics go by name; 6 adds ids, which nobody types. */
enum { VERSION_BY_NAME = 5 };

static void request_fill(struct session *s, struct delete_topics_request *req)
{
    const struct args *a = s->args;

    wire_defaults(&wire_delete_topics_request, req);
    req->timeout_ms = (int32_t)s->timeout_ms;
    req->n_topic_names = (int32_t)a->n_operands;
    req->topic_names = arena_array(&s->arena, a->n_operands, sizeof *req->topic_names);
    for (size_t i = 0; i < a->n_operands; i++)
        req->topic_names[i] = kstr_of(a->operands[i]);
}

static int response_print(const struct args *a, const struct delete_topics_response *r)
{
    int rc = CLI_OK;

    for (int32_t i = 0; i < r->n_responses; i++) {
        const struct delete_topics_response_responses *t = &r->responses[i];
        char name[256];
        snprintf(name, sizeof name, "%.*s", KSTR_FMT(t->name));
        if (t->error_code == KERR_UNKNOWN_TOPIC_OR_PARTITION && args_has(a, "if-exists"))
            continue;
        if (t->error_code != KERR_NONE) {
            complain_kerr(a, name, t->error_code, t->error_message);
            rc = CLI_FAILED;
        } else if (args_has(a, "json")) {
            out_json(stdout, json_pack("{s:s, s:b}", "topic", name, "deleted", 1));
        } else {
            printf("%s deleted\n", name);
        }
    }
    return rc;
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    struct delete_topics_request req;
    int rc = session_init(&s, a);

    if (rc != CLI_OK || (rc = session_connect(&s)) != CLI_OK)
        return rc;
    request_fill(&s, &req);
    const struct delete_topics_response *r =
        session_call(&s, &(struct session_call){ .target = TARGET_CONTROLLER,
                                                 .request = &wire_delete_topics_request,
                                                 .body = &req,
                                                 .max_version = VERSION_BY_NAME,
                                                 .judge = judge });
    return r == NULL ? CLI_FAILED : response_print(a, r);
}

const struct command cmd_topic_delete = {
    .name = "delete",
    .operands = "TOPIC...",
    .operands_min = 1,
    .operands_max = -1,
    .summary = "Deletes topics and their records, for good",
    .examples = "klog topic delete orders\n"
                "klog topic delete scratch --if-exists",
    .options = options,
    .online = true,
    .run = run,
};
