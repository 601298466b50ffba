/* SPDX-License-Identifier: Apache-2.0 */
/* klog leader elect: the preferred replica of partitions leads again, or, where nobody in sync is left, any. One thread. */
#include <string.h>

#include "lib/base/attr.h"
#include "src/commands.h"
#include "src/out.h"
#include "src/session.h"

enum { PARTITIONS_MAX = 10000 };

static const struct option_spec options[] = {
    { "unclean", 0, NULL, "where no replica in sync is there: any other one leads. Acknowledged records may be lost" },
    { NULL, 0, NULL, NULL },
};

/* "TOPIC" or "TOPIC:N,N". */
static int named_parse(struct session *s, const char *text, const struct metadata_response *md,
                       struct elect_leaders_request_topic_partitions *ret)
{
    const char *colon = strrchr(text, ':');
    size_t n = colon == NULL ? strlen(text) : (size_t)(colon - text);

    ret->topic = kstr_bytes(arena_printf(&s->arena, "%.*s", (int)n, text), n);
    ret->partitions = arena_array(&s->arena, PARTITIONS_MAX, sizeof ret->partitions[0]);
    for (int32_t i = 0; colon == NULL && i < md->n_topics; i++)
        for (int32_t k = 0; kstr_eq(md->topics[i].name, ret->topic) && k < md->topics[i].n_partitions; k++)
            if (ret->n_partitions < PARTITIONS_MAX)
                ret->partitions[ret->n_partitions++] = md->topics[i].partitions[k].partition_index;
    if (colon == NULL)
        return CLI_OK;
    char *list = arena_strdup(&s->arena, colon + 1), *word;
    while ((word = strsep(&list, ",")) != NULL) {
        int64_t id;
        if (!args_int(word, 0, INT32_MAX, &id) || ret->n_partitions == PARTITIONS_MAX)
            return complain_usage(s->args, "'%s' is not of the form TOPIC or TOPIC:N,N", text);
        ret->partitions[ret->n_partitions++] = (int32_t)id;
    }
    return CLI_OK;
}

static int names_parse(struct session *s, struct elect_leaders_request *req)
{
    const struct args *a = s->args;
    const char **topics = arena_array(&s->arena, a->n_operands + 1, sizeof(*topics));
    int rc = CLI_OK;

    req->n_topic_partitions = -1;
    if (a->n_operands == 0)
        return CLI_OK;
    for (size_t i = 0; i < a->n_operands; i++)
        topics[i] = arena_printf(&s->arena, "%.*s", (int)strcspn(a->operands[i], ":"), a->operands[i]);
    const struct metadata_response *md = session_metadata(s, topics, a->n_operands);
    if (md == NULL)
        return CLI_FAILED;
    for (int32_t i = 0; i < md->n_topics; i++) {
        char name[256];
        if (md->topics[i].error_code == KERR_NONE)
            continue;
        snprintf(name, sizeof name, "%.*s", KSTR_FMT(md->topics[i].name));
        complain_kerr(a, name, md->topics[i].error_code, KSTR_NULL);
        return CLI_FAILED;
    }
    req->n_topic_partitions = (int32_t)a->n_operands;
    req->topic_partitions = arena_array(&s->arena, a->n_operands, sizeof *req->topic_partitions);
    for (size_t i = 0; i < a->n_operands && rc == CLI_OK; i++)
        rc = named_parse(s, a->operands[i], md, &req->topic_partitions[i]);
    return rc;
}

/* That it needs nothing is no failure. */
static int tell(struct session *s, const struct elect_leaders_response *r)
{
    int rc = CLI_OK;

    for (int32_t i = 0; i < r->n_replica_election_results; i++)
        for (int32_t k = 0; k < r->replica_election_results[i].n_partition_result; k++) {
            const struct elect_leaders_response_partition_result *p = &r->replica_election_results[i].partition_result[k];
            struct kstr topic = r->replica_election_results[i].topic;
            bool elected = p->error_code == KERR_NONE;
            char what[300];
            snprintf(what, sizeof what, "%.*s partition %d", KSTR_FMT(topic), p->partition_id);
            if (args_has(s->args, "json"))
                out_json(stdout, json_pack("{s:o, s:i, s:b, s:o}", "topic", json_kstr(topic), "partition", (int)p->partition_id,
                                           "elected", (int)elected, "error",
                                           elected ? json_null() : json_string(kerr_name((enum kerr)p->error_code))));
            else if (elected)
                printf("%s has another leader\n", what);
            if (elected || p->error_code == KERR_ELECTION_NOT_NEEDED)
                continue;
            complain_kerr(s->args, what, p->error_code, p->error_message);
            rc = CLI_FAILED;
        }
    return rc;
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    struct elect_leaders_request req;
    int rc = session_init(&s, a);

    if (rc == CLI_OK && args_has(a, "unclean") && a->n_operands == 0)
        return complain_usage(a, "name the partitions that may lose records: TOPIC, or TOPIC:N,N");
    if (rc != CLI_OK || (rc = session_connect(&s)) != CLI_OK)
        return rc;
    wire_defaults(&wire_elect_leaders_request, &req);
    req.election_type = args_has(a, "unclean") ? 1 : 0;
    req.timeout_ms = (int32_t)s.timeout_ms;
    if ((rc = names_parse(&s, &req)) != CLI_OK)
        return rc;
    const struct elect_leaders_response *r = session_call(
        &s, &(struct session_call){ .target = TARGET_CONTROLLER, .request = &wire_elect_leaders_request, .body = &req });
    if (r == NULL)
        return CLI_FAILED;
    if (r->error_code != KERR_NONE) {
        complain_kerr(a, "ElectLeaders", r->error_code, KSTR_NULL);
        return CLI_FAILED;
    }
    return tell(&s, r);
}

const struct command cmd_leader_elect = {
    .name = "elect",
    .operands = "[TOPIC[:N,N...]...]",
    .operands_max = -1,
    .summary = "Lets the preferred replica lead again: the first of a partition's replicas",
    .text = "Without a topic, of all partitions. Those that it leads already are left as they are. With --unclean any replica leads with what it\n"
            "has, but only where none that is in sync is there.",
    .examples = "klog leader elect\n"
                "klog leader elect orders:0,1\n"
                "klog leader elect orders:3 --unclean",
    .options = options,
    .online = true,
    .run = run,
};
