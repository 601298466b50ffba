/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog reassign plan: what klog reassign run, or kafka-reassign-partitions --execute, would do so that brokers have as many replicas as
 * each other, one is emptied, or a new one gets its share. It asks for Metadata only and changes nothing. One thread.
 */
#include <string.h>

#include "lib/base/attr.h"
#include "src/commands.h"
#include "src/progress.h"
#include "src/reassign_entries.h"

static const struct option_spec options[] = {
    { "drain", 'd', "ID", "move all away from this broker; may be given more than once" },
    { "add", 'a', "ID", "move only to this broker, until it has its share; may be given more than once" },
    { "topic", 't', "TOPIC", "only this topic; may be given more than once" },
    { "replication-factor", 'r', "N", "give each partition so many replicas" },
    { NULL, 0, NULL, NULL },
};

/* All that is given is the id of a broker that is there. */
static int ids_check(const struct args *a, const struct metadata_response *md, const char *option)
{
    const char *text;

    for (size_t i = 0; (text = args_nth(a, option, i)) != NULL; i++) {
        int64_t id;
        bool there = false;
        if (!args_int(text, 0, INT32_MAX, &id))
            return complain_usage(a, "--%s: '%s' is no broker id", option, text);
        for (int32_t k = 0; k < md->n_brokers; k++)
            there |= md->brokers[k].node_id == (int32_t)id;
        if (!there && strcmp(option, "add") == 0) {
            complain(a, "there is no broker %s", text);
            return CLI_FAILED;
        }
    }
    return CLI_OK;
}

static bool is_given(const struct args *a, const char *option, int32_t id)
{
    const char *text;
    int64_t given;

    for (size_t i = 0; (text = args_nth(a, option, i)) != NULL; i++)
        if (args_int(text, 0, INT32_MAX, &given) && given == id)
            return true;
    return false;
}

/* Racks count only where every broker has one. */
static void brokers_fill(struct session *s, const struct metadata_response *md, struct plan *p)
{
    bool racks = true;

    p->n_brokers = (size_t)md->n_brokers;
    p->brokers = arena_array(&s->arena, p->n_brokers + 1, sizeof *p->brokers);
    for (int32_t i = 0; i < md->n_brokers; i++)
        racks &= md->brokers[i].rack.n > 0;
    for (int32_t i = 0; i < md->n_brokers; i++) {
        int32_t id = md->brokers[i].node_id, rack = racks ? i : -1;
        for (int32_t k = 0; k < i && racks; k++)
            if (kstr_eq(md->brokers[k].rack, md->brokers[i].rack)) {
                rack = k;
                break;
            }
        p->brokers[i] = (struct plan_broker){
            .id = id,
            .rack = rack,
            .empties = is_given(s->args, "drain", id),
            .receives = !args_has(s->args, "add") || is_given(s->args, "add", id),
        };
    }
}

static int parts_fill(struct session *s, const struct part *parts, size_t n, struct plan *p)
{
    p->n_parts = n;
    p->parts = arena_array(&s->arena, n + 1, sizeof *p->parts);
    for (size_t i = 0; i < n; i++) {
        const struct metadata_response_partitions *m = parts[i].meta;
        if (m->n_replica_nodes < 1 || m->n_replica_nodes > PLAN_REPLICAS_MAX) {
            complain(s->args, "%.*s partition %d has %d replicas", KSTR_FMT(parts[i].topic->name), m->partition_index,
                     m->n_replica_nodes);
            return CLI_FAILED;
        }
        p->parts[i].n = m->n_replica_nodes;
        memcpy(p->parts[i].replicas, m->replica_nodes, (size_t)m->n_replica_nodes * sizeof m->replica_nodes[0]);
    }
    return CLI_OK;
}

static void print(struct session *s, const struct part *parts, const struct plan *p)
{
    struct moves m = { .at = arena_array(&s->arena, p->n_parts + 1, sizeof *m.at) };
    int64_t bytes = 0, replicas = 0;
    char size[16];

    for (size_t i = 0; i < p->n_parts; i++) {
        const struct plan_part *pt = &p->parts[i];
        if (!pt->changed)
            continue;
        struct move *to = &m.at[m.n++];
        to->topic = arena_printf(&s->arena, "%.*s", KSTR_FMT(parts[i].topic->name));
        to->partition = parts[i].meta->partition_index;
        to->n = pt->n;
        memcpy(to->replicas, pt->replicas, sizeof to->replicas);
        replicas += pt->n_moved;
        bytes += pt->n_moved * MAX(parts[i].size_bytes, 0);
    }
    complain(s->args, "%zu of %zu partitions change, %lld replicas are copied: %s", m.n, p->n_parts, (long long)replicas,
             size_text(bytes, size, sizeof size));
    out_json(stdout, moves_json(&m));
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    const char **topics;
    struct part *parts;
    struct plan p = { .balance = !args_has(a, "drain") };
    int64_t n_replicas;
    bool failed;
    size_t n = 0;
    int rc = args_get_int(a, "replication-factor", 1, PLAN_REPLICAS_MAX, 0, &n_replicas);

    if (rc != CLI_OK || (rc = session_init(&s, a)) != CLI_OK || (rc = session_connect(&s)) != CLI_OK)
        return rc;
    topics = arena_array(&s.arena, a->n_options + 1, sizeof(*topics));
    for (const char *t; (t = args_nth(a, "topic", n)) != NULL;)
        topics[n++] = t;
    const struct metadata_response *md = session_metadata(&s, topics, n);
    if (md == NULL)
        return CLI_FAILED;
    if ((rc = ids_check(a, md, "drain")) != CLI_OK || (rc = ids_check(a, md, "add")) != CLI_OK)
        return rc;
    n = parts_list(&s, md, &parts, &failed);
    if (failed)
        return CLI_FAILED;
    parts_ask_ends(&s, parts, n);
    brokers_fill(&s, md, &p);
    p.n_replicas = (int32_t)n_replicas;
    if ((rc = parts_fill(&s, parts, n, &p)) != CLI_OK)
        return rc;
    int64_t at = plan_make(&p);
    if (at >= 0) {
        complain(a, "%.*s partition %d: there are too few brokers for its replicas", KSTR_FMT(parts[at].topic->name),
                 parts[at].meta->partition_index);
        return CLI_FAILED;
    }
    print(&s, parts, &p);
    return CLI_OK;
}

const struct command cmd_reassign_plan = {
    .name = "plan",
    .operands = "",
    .summary = "Prints which replicas to move to level brokers, or to empty one",
    .text = "As little as possible is moved: replicas on brokers that are not there, or that --drain names, to the rack and broker that have\n"
            "fewest; without --drain also one at a time from the broker with most to the one with least, and preferred leaders are\n"
            "spread. The JSON on standard output is what kafka-reassign-partitions reads, too; nothing is changed.",
    .examples = "klog reassign plan >plan.json && klog reassign run plan.json --throttle 50000000\n"
                "klog reassign plan --drain 3\n"
                "klog reassign plan --add 4 --topic orders",
    .options = options,
    .online = true,
    .run = run,
};
