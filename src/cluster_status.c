/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a cluster on this machine is: a row for ZooKeeper and one for each broker, from the processes and from Metadata, which
 * any broker that runs is asked for; see cluster.h. One thread.
 */
#include <poll.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "src/cluster.h"
#include "src/out.h"

enum {
    LOOK_AGAIN_MS = 50,
    ANSWER_MS = 3000, /* to one question about the cluster's state */
};

static const struct column columns[] = {
    { "process", "PROCESS", false }, { "broker", "BROKER", true },   { "address", "ADDRESS", false },
    { "rack", "RACK", false },       { "pid", "PID", true },         { "state", "STATE", false },
    { "leads", "LEADS", true },      { "replicas", "REPLICAS", true }, { "out_of_sync", "OUT-OF-SYNC", true },
    { NULL, NULL, false },
};

/* What Metadata says of one broker. */
struct standing {
    bool registered;
    int leads, replicas, out_of_sync;
};

static bool is_in(int32_t id, const int32_t *ids, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        if (ids[i] == id)
            return true;
    }
    return false;
}

static struct standing standing_of(const struct metadata_response *md, int32_t id)
{
    struct standing s = { 0 };

    for (int32_t i = 0; i < md->n_brokers; i++)
        s.registered = s.registered || md->brokers[i].node_id == id;
    for (int32_t i = 0; i < md->n_topics; i++) {
        for (int32_t k = 0; k < md->topics[i].n_partitions; k++) {
            const struct metadata_response_partitions *p = &md->topics[i].partitions[k];
            s.leads += p->leader_id == id;
            if (!is_in(id, p->replica_nodes, p->n_replica_nodes))
                continue;
            s.replicas++;
            s.out_of_sync += !is_in(id, p->isr_nodes, p->n_isr_nodes);
        }
    }
    return s;
}

/* Partitions that nobody leads. */
static int count_leaderless(const struct metadata_response *md)
{
    int n = 0;

    for (int32_t i = 0; i < md->n_topics; i++) {
        for (int32_t k = 0; k < md->topics[i].n_partitions; k++)
            n += md->topics[i].partitions[k].leader_id < 0;
    }
    return n;
}

/* The metadata as the broker at `address` sees it; NULL when it does not answer, without a word. */
static const struct metadata_response *ask_for_metadata(struct session *s, const struct cluster *c, const char *address)
{
    struct metadata_request req;
    const void *response = NULL;
    char why[256];

    if (brokers_probe(address, ANSWER_MS, why, sizeof why) < 0 || session_open(s, c->args, address, ANSWER_MS) != CLI_OK)
        return NULL;
    wire_defaults(&wire_metadata_request, &req);
    req.allow_auto_topic_creation = false;
    req.n_topics = -1;
    const struct session_call call = { .target = TARGET_ANY, .request = &wire_metadata_request, .body = &req };
    return session_try(s, &call, &response) == 0 ? response : NULL;
}

static json_t *zookeeper_row(const struct cluster *c, bool *bad)
{
    json_t *row = json_object();
    pid_t pid = cluster_zookeeper_pid(c);
    bool serves = cluster_zookeeper_serves(c);

    *bad = *bad || !serves;
    json_object_set_new(row, "process", json_string("zookeeper"));
    json_object_set_new(row, "broker", json_null());
    json_object_set_new(row, "address", json_sprintf("127.0.0.1:%d", (int)c->zookeeper_port));
    json_object_set_new(row, "rack", json_null());
    json_object_set_new(row, "pid", pid > 0 ? json_integer(pid) : json_null());
    json_object_set_new(row, "state", json_string(pid == 0 ? "stopped" : serves ? "serves" : "does not answer"));
    return row;
}

static const char *state_of(pid_t pid, bool answers, const struct standing *s)
{
    if (pid == 0)
        return "stopped";
    if (!answers)
        return "does not answer";
    return s->registered ? "serves" : "not registered";
}

/* `md` is the cluster as the broker sees it, NULL when it did not answer; `all` as the first that answered does. */
static json_t *broker_row(const struct cluster_broker *b, const struct metadata_response *md, const struct metadata_response *all)
{
    struct standing s = all != NULL ? standing_of(all, b->id) : (struct standing){ 0 };
    json_t *row = json_object();
    pid_t pid = cluster_broker_pid(b);

    if (md != NULL)
        s.registered = standing_of(md, b->id).registered;
    json_object_set_new(row, "process", json_string("klogd"));
    json_object_set_new(row, "broker", json_integer(b->id));
    json_object_set_new(row, "address", json_string(b->address));
    json_object_set_new(row, "rack", b->rack != NULL ? json_string(b->rack) : json_null());
    json_object_set_new(row, "pid", pid > 0 ? json_integer(pid) : json_null());
    json_object_set_new(row, "state", json_string(state_of(pid, md != NULL, &s)));
    json_object_set_new(row, "leads", all != NULL ? json_integer(s.leads) : json_null());
    json_object_set_new(row, "replicas", all != NULL ? json_integer(s.replicas) : json_null());
    json_object_set_new(row, "out_of_sync", all != NULL ? json_integer(s.out_of_sync) : json_null());
    return row;
}

int cluster_print(struct cluster *c)
{
    struct session *sessions = xcalloc(c->n_brokers, sizeof *sessions);
    const struct metadata_response **md = xcalloc(c->n_brokers, sizeof *md), *all = NULL;
    json_t *rows = json_array();
    bool bad = false;

    for (size_t i = 0; i < c->n_brokers; i++) {
        if (cluster_broker_pid(&c->brokers[i]) != 0)
            md[i] = ask_for_metadata(&sessions[i], c, c->brokers[i].address);
        all = all != NULL ? all : md[i];
        bad = bad || md[i] == NULL || !standing_of(md[i], c->brokers[i].id).registered;
    }
    json_array_append_new(rows, zookeeper_row(c, &bad));
    for (size_t i = 0; i < c->n_brokers; i++)
        json_array_append_new(rows, broker_row(&c->brokers[i], md[i], all));
    out_rows(stdout, args_has(c->args, "json"), columns, rows);
    int leaderless = all != NULL ? count_leaderless(all) : 0;
    if (leaderless > 0)
        complain(c->args, "%d partitions have no leader (klog topic describe -b %s)", leaderless, c->brokers[0].address);
    for (size_t i = 0; i < c->n_brokers; i++)
        session_close(&sessions[i]);
    free(sessions);
    free(md);
    return bad || leaderless > 0 ? CLI_FAILED : CLI_OK;
}

/* ---- waiting ---- */
/* Does the broker know of each of those that run? */
static bool knows_all(const struct cluster *c, const struct cluster_broker *b)
{
    CLEANUP(session_close) struct session s = { 0 };
    const struct metadata_response *md = ask_for_metadata(&s, c, b->address);
    bool all = md != NULL;

    for (size_t i = 0; all && i < c->n_brokers; i++)
        all = cluster_broker_pid(&c->brokers[i]) == 0 || standing_of(md, c->brokers[i].id).registered;
    return all;
}

int cluster_wait_until_whole(struct cluster *c)
{
    int64_t until_ms = clock_mono_ms() + c->timeout_ms;

    for (size_t i = 0; i < c->n_brokers; i++) {
        const struct cluster_broker *b = &c->brokers[i];
        while (cluster_broker_pid(b) != 0 && !knows_all(c, b)) {
            if (clock_mono_ms() >= until_ms) {
                complain(c->args, "broker %d does not know of all the others yet (%s)", (int)b->id, b->log);
                return CLI_FAILED;
            }
            poll(NULL, 0, LOOK_AGAIN_MS);
        }
    }
    return CLI_OK;
}
