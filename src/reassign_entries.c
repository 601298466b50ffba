/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other replicas for partitions, as the commands of klog reassign ask for them: the file that kafka-reassign-partitions reads and
 * writes, AlterPartitionReassignments and ListPartitionReassignments, and the throttle, which is settings of brokers and topics
 * (KIP-73). One thread.
 */
#include "src/reassign_entries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/mem.h"
#include "src/config_entries.h"

enum {
    FILE_BYTES_MAX = 64 << 20,
    BEGIN_MAX = 1000, /* partitions of one request */
};

/* ---- the file ---- */
static int complain_file(struct session *s, const char *path, const char *why)
{
    complain(s->args, "%s: %s; it looks like {\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":0,\"replicas\":[1,2]}]}",
             path, why);
    return CLI_FAILED;
}

static const char *replicas_take(struct move *m, const json_t *ids)
{
    if (!json_is_array(ids) || json_array_size(ids) == 0 || json_array_size(ids) > PLAN_REPLICAS_MAX)
        return "a partition's replicas are no list of 1 to 32 brokers";
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *id = json_array_get(ids, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > INT32_MAX)
            return "a replica is no broker id";
        m->replicas[m->n++] = (int32_t)json_integer_value(id);
    }
    return NULL;
}

static const char *move_take(struct session *s, struct move *m, const json_t *j)
{
    const json_t *topic = json_object_get(j, "topic"), *partition = json_object_get(j, "partition");
    const json_t *dirs = json_object_get(j, "log_dirs");

    if (!json_is_string(topic) || strlen(json_string_value(topic)) > 249 || !json_is_integer(partition) ||
        json_integer_value(partition) < 0 || json_integer_value(partition) > INT32_MAX)
        return "a partition has no topic or no number";
    for (size_t i = 0; i < json_array_size(dirs); i++)
        if (!json_is_string(json_array_get(dirs, i)) || strcmp(json_string_value(json_array_get(dirs, i)), "any") != 0)
            return "log_dirs can only be \"any\": a broker chooses among its directories";
    m->topic = arena_strdup(&s->arena, json_string_value(topic));
    m->partition = (int32_t)json_integer_value(partition);
    return replicas_take(m, json_object_get(j, "replicas"));
}

static int compare_moves(const void *a, const void *b)
{
    const struct move *x = a, *y = b;
    int d = strcmp(x->topic, y->topic);

    return d != 0 ? d : (x->partition > y->partition) - (x->partition < y->partition);
}

static const char *moves_take(struct session *s, struct moves *m, const json_t *root)
{
    const json_t *list = json_object_get(root, "partitions");

    if (json_integer_value(json_object_get(root, "version")) != 1)
        return "its version is not 1";
    if (!json_is_array(list) || json_array_size(list) == 0)
        return "it names no partitions";
    m->at = arena_array(&s->arena, json_array_size(list), sizeof *m->at);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *why = move_take(s, &m->at[m->n++], json_array_get(list, i));
        if (why != NULL)
            return why;
    }
    if (m->n > 0)
        qsort(m->at, m->n, sizeof *m->at, compare_moves);
    for (size_t i = 1; i < m->n; i++)
        if (compare_moves(&m->at[i - 1], &m->at[i]) == 0)
            return "it names a partition twice";
    return NULL;
}

static int file_read(struct session *s, const char *path, struct bytebuf *ret)
{
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    char piece[65536];
    size_t n;

    if (f == NULL) {
        complain(s->args, "%s: %s", path, strerror(errno));
        return CLI_FAILED;
    }
    while (ret->n <= FILE_BYTES_MAX && (n = fread(piece, 1, sizeof piece, f)) > 0)
        bytebuf_add(ret, piece, n);
    bool failed = ferror(f) != 0;
    if (f != stdin)
        fclose(f);
    if (!failed && ret->n <= FILE_BYTES_MAX)
        return CLI_OK;
    complain(s->args, "%s: %s", path, failed ? "it cannot be read" : "it has more than 64 MiB");
    return CLI_FAILED;
}

int moves_read(struct session *s, const char *path, struct moves *ret)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    json_error_t err;

    *ret = (struct moves){ 0 };
    if (file_read(s, path, &b) != CLI_OK)
        return CLI_FAILED;
    json_t *root = json_loadb((const char *)b.p, b.n, JSON_REJECT_DUPLICATES, &err);
    if (root == NULL) {
        complain(s->args, "%s: it is no JSON: line %d: %s", path, err.line, err.text);
        return CLI_FAILED;
    }
    const char *why = moves_take(s, ret, root);
    json_decref(root);
    return why == NULL ? CLI_OK : complain_file(s, path, why);
}

json_t *moves_json(const struct moves *m)
{
    json_t *list = json_array();

    for (size_t i = 0; i < m->n; i++)
        json_array_append_new(list, json_pack("{s:s, s:i, s:o}", "topic", m->at[i].topic, "partition", (int)m->at[i].partition,
                                              "replicas", json_numbers(m->at[i].replicas, m->at[i].n)));
    return json_pack("{s:i, s:o}", "version", 1, "partitions", list);
}

static const struct move *moves_find(const struct moves *m, struct kstr topic, int32_t partition)
{
    size_t from = 0, to = m->n;

    while (from < to) {
        size_t at = (from + to) / 2;
        int d = kstr_cmp(kstr_of(m->at[at].topic), topic);
        d = d != 0 ? d : (m->at[at].partition > partition) - (m->at[at].partition < partition);
        if (d == 0)
            return &m->at[at];
        if (d < 0)
            from = at + 1;
        else
            to = at;
    }
    return NULL;
}

/* ---- what there is ---- */
const struct metadata_response_partitions *moves_partition(const struct metadata_response *md, const struct move *m)
{
    for (int32_t i = 0; i < md->n_topics; i++) {
        const struct metadata_response_topics *t = &md->topics[i];
        for (int32_t k = 0; kstr_eqz(t->name, m->topic) && k < t->n_partitions; k++)
            if (t->partitions[k].partition_index == m->partition)
                return &t->partitions[k];
    }
    return NULL;
}

static bool begins_topic(const struct moves *m, size_t i)
{
    return i == 0 || strcmp(m->at[i - 1].topic, m->at[i].topic) != 0;
}

const struct metadata_response *moves_metadata(struct session *s, const struct moves *m)
{
    const char **topics = arena_array(&s->arena, m->n + 1, sizeof(*topics));
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++)
        if (begins_topic(m, i))
            topics[n++] = m->at[i].topic;
    const struct metadata_response *md = session_metadata(s, topics, n);
    for (size_t i = 0; md != NULL && i < m->n; i++)
        if (moves_partition(md, &m->at[i]) == NULL) {
            complain(s->args, "there is no partition %d of topic %s", m->at[i].partition, m->at[i].topic);
            return NULL;
        }
    return md;
}

/* ---- what is going on ---- */
int moving_list(struct session *s, const struct moves *m, struct moving **ret, size_t *ret_n)
{
    struct list_partition_reassignments_request req;
    size_t n = 0;

    wire_defaults(&wire_list_partition_reassignments_request, &req);
    req.timeout_ms = (int32_t)s->timeout_ms;
    req.n_topics = -1;
    const struct list_partition_reassignments_response *r =
        session_call(s, &(struct session_call){
                            .target = TARGET_CONTROLLER, .request = &wire_list_partition_reassignments_request, .body = &req });
    if (r == NULL)
        return CLI_FAILED;
    if (r->error_code != KERR_NONE) {
        complain_kerr(s->args, "ListPartitionReassignments", r->error_code, r->error_message);
        return CLI_FAILED;
    }
    for (int32_t i = 0; i < r->n_topics; i++)
        n += (size_t)r->topics[i].n_partitions;
    *ret = arena_array(&s->arena, n + 1, sizeof **ret);
    *ret_n = 0;
    for (int32_t i = 0; i < r->n_topics; i++)
        for (int32_t k = 0; k < r->topics[i].n_partitions; k++) {
            const struct list_partition_reassignments_response_partitions *p = &r->topics[i].partitions[k];
            if (m == NULL || moves_find(m, r->topics[i].name, p->partition_index) != NULL)
                (*ret)[(*ret_n)++] =
                    (struct moving){ arena_printf(&s->arena, "%.*s", KSTR_FMT(r->topics[i].name)), p };
        }
    return CLI_OK;
}

int64_t moving_copied(struct session *s, const struct moving *m, int32_t broker)
{
    struct describe_log_dirs_request req;
    int32_t ids[] = { m->p->partition_index };
    struct describe_log_dirs_request_topics t = { .topic = kstr_of(m->topic), .partitions = ids, .n_partitions = 1 };
    const void *answer;

    wire_defaults(&wire_describe_log_dirs_request, &req);
    req.topics = &t;
    req.n_topics = 1;
    if (session_try(s,
                    &(struct session_call){ .target = TARGET_BROKER,
                                            .broker_id = broker,
                                            .request = &wire_describe_log_dirs_request,
                                            .body = &req },
                    &answer) < 0)
        return -1;
    const struct describe_log_dirs_response *r = answer;
    for (int32_t i = 0; i < r->n_results; i++)
        for (int32_t k = 0; k < r->results[i].n_topics; k++)
            if (r->results[i].topics[k].n_partitions == 1)
                return r->results[i].topics[k].partitions[0].partition_size;
    return -1;
}

/* ---- beginning ---- */
static void request_fill(struct session *s, const struct moves *m, size_t from, size_t to, bool back,
                         struct alter_partition_reassignments_request *req)
{
    struct alter_partition_reassignments_request_topics *t = NULL;

    wire_defaults(&wire_alter_partition_reassignments_request, req);
    req->timeout_ms = (int32_t)s->timeout_ms;
    req->topics = arena_array(&s->arena, to - from, sizeof *req->topics);
    struct alter_partition_reassignments_request_partitions *flat = arena_array(&s->arena, to - from, sizeof *flat);
    for (size_t i = from; i < to; i++) {
        if (i == from || begins_topic(m, i)) {
            t = &req->topics[req->n_topics++];
            t->name = kstr_of(m->at[i].topic);
            t->partitions = &flat[i - from];
        }
        t->n_partitions++;
        flat[i - from].partition_index = m->at[i].partition;
        flat[i - from].replicas = m->at[i].replicas;
        flat[i - from].n_replicas = back ? -1 : m->at[i].n;
    }
}

static int answers_judge(struct session *s, const struct alter_partition_reassignments_response *r, bool back)
{
    int rc = CLI_OK;

    if (r->error_code != KERR_NONE) {
        complain_kerr(s->args, "AlterPartitionReassignments", r->error_code, r->error_message);
        return CLI_FAILED;
    }
    for (int32_t i = 0; i < r->n_responses; i++)
        for (int32_t k = 0; k < r->responses[i].n_partitions; k++) {
            const struct alter_partition_reassignments_response_partitions *p = &r->responses[i].partitions[k];
            char what[300];
            if (p->error_code == KERR_NONE || (back && p->error_code == KERR_NO_REASSIGNMENT_IN_PROGRESS))
                continue;
            snprintf(what, sizeof what, "%.*s partition %d", KSTR_FMT(r->responses[i].name), p->partition_index);
            complain_kerr(s->args, what, p->error_code, p->error_message);
            rc = CLI_FAILED;
        }
    return rc;
}

int moves_begin(struct session *s, const struct moves *m, bool back)
{
    int rc = CLI_OK;

    for (size_t from = 0; from < m->n; from += BEGIN_MAX) {
        struct alter_partition_reassignments_request req;
        request_fill(s, m, from, MIN(from + BEGIN_MAX, m->n), back, &req);
        const struct alter_partition_reassignments_response *r = session_call(
            s, &(struct session_call){
                   .target = TARGET_CONTROLLER, .request = &wire_alter_partition_reassignments_request, .body = &req });
        if (r == NULL)
            return CLI_FAILED;
        if (answers_judge(s, r, back) != CLI_OK)
            rc = CLI_FAILED;
    }
    return rc;
}

/* ---- the throttle ---- */
static const char *const rates[] = { "leader.replication.throttled.rate", "follower.replication.throttled.rate" };
static const char *const lists[] = { "leader.replication.throttled.replicas", "follower.replication.throttled.replicas" };

static int brokers_configure(struct session *s, const struct metadata_response *md, const char *value, enum config_op op)
{
    const struct config_change changes[] = { { rates[0], value, op }, { rates[1], value, op } };
    int rc = CLI_OK;

    for (int32_t i = 0; i < md->n_brokers; i++) {
        const struct resource r = { .type = RESOURCE_BROKER,
                                    .name = arena_printf(&s->arena, "%d", md->brokers[i].node_id),
                                    .broker_id = md->brokers[i].node_id };
        if (config_apply(s, &r, changes, ARRAY_LEN(changes), false) != CLI_OK)
            rc = CLI_FAILED;
    }
    return rc;
}

static bool is_one_of(const int32_t *ids, int32_t n, int32_t id)
{
    for (int32_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* As Kafka's tool has it: all that are there now give, those that come take. */
static void throttled_add(const struct metadata_response *md, const struct move *m, struct bytebuf *gives, struct bytebuf *takes)
{
    const struct metadata_response_partitions *p = moves_partition(md, m);

    for (int32_t i = 0; i < p->n_replica_nodes; i++)
        bytebuf_printf(gives, "%s%d:%d", gives->n > 0 ? "," : "", m->partition, p->replica_nodes[i]);
    for (int32_t i = 0; i < m->n; i++)
        if (!is_one_of(p->replica_nodes, p->n_replica_nodes, m->replicas[i]))
            bytebuf_printf(takes, "%s%d:%d", takes->n > 0 ? "," : "", m->partition, m->replicas[i]);
}

int throttle_put(struct session *s, const struct metadata_response *md, const struct moves *m, int64_t bytes_per_second)
{
    const char *rate = arena_printf(&s->arena, "%lld", (long long)bytes_per_second);
    struct bytebuf gives = { 0 }, takes = { 0 };
    int rc = brokers_configure(s, md, rate, CONFIG_OP_SET);

    for (size_t i = 0; i < m->n && rc == CLI_OK; i++) {
        throttled_add(md, &m->at[i], &gives, &takes);
        if (i + 1 < m->n && !begins_topic(m, i + 1))
            continue;
        const struct config_change changes[] = { { lists[0], arena_strdup(&s->arena, bytebuf_cstr(&gives)), CONFIG_OP_SET },
                                                 { lists[1], arena_strdup(&s->arena, bytebuf_cstr(&takes)), CONFIG_OP_SET } };
        const struct resource r = { .type = RESOURCE_TOPIC, .name = m->at[i].topic, .broker_id = -1 };
        rc = takes.n == 0 ? CLI_OK : config_apply(s, &r, changes, ARRAY_LEN(changes), false);
        gives.n = takes.n = 0;
    }
    bytebuf_done(&gives);
    bytebuf_done(&takes);
    return rc;
}

int throttle_take(struct session *s, const struct metadata_response *md, const struct moves *m)
{
    static const struct config_change changes[] = { { "leader.replication.throttled.replicas", NULL, CONFIG_OP_DELETE },
                                                    { "follower.replication.throttled.replicas", NULL, CONFIG_OP_DELETE } };
    int rc = brokers_configure(s, md, NULL, CONFIG_OP_DELETE);

    for (size_t i = 0; i < m->n; i++) {
        const struct resource r = { .type = RESOURCE_TOPIC, .name = m->at[i].topic, .broker_id = -1 };
        if (begins_topic(m, i) && config_apply(s, &r, changes, ARRAY_LEN(changes), false) != CLI_OK)
            rc = CLI_FAILED;
    }
    return rc;
}
