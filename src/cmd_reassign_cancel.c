/* SPDX-License-Identifier: Apache-2.0 */
/* klog reassign cancel: partitions that are getting other replicas keep those they had, and the throttle goes. One thread. */
#include "lib/base/attr.h"
#include "src/commands.h"
#include "src/reassign_entries.h"

static void moves_of(struct session *s, const struct moving *now, size_t n, struct moves *ret)
{
    ret->n = n;
    ret->at = arena_array(&s->arena, n + 1, sizeof *ret->at);
    for (size_t i = 0; i < n; i++)
        ret->at[i] = (struct move){ .topic = now[i].topic, .partition = now[i].p->partition_index };
}

static void tell(const struct args *a, const struct moves *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (args_has(a, "json"))
            out_json(stdout, json_pack("{s:s, s:i, s:b}", "topic", m->at[i].topic, "partition", (int)m->at[i].partition, "cancelled", 1));
        else
            printf("%s partition %d stays where it was\n", m->at[i].topic, m->at[i].partition);
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    struct moves named, m;
    struct moving *now;
    size_t n;
    int rc = session_init(&s, a);

    if (rc != CLI_OK || (a->n_operands > 0 && (rc = moves_read(&s, a->operands[0], &named)) != CLI_OK) ||
        (rc = session_connect(&s)) != CLI_OK)
        return rc;
    if (moving_list(&s, a->n_operands > 0 ? &named : NULL, &now, &n) != CLI_OK)
        return CLI_FAILED;
    moves_of(&s, now, n, &m);
    const struct moves *throttled = a->n_operands > 0 ? &named : &m;
    const struct metadata_response *md = moves_metadata(&s, throttled);
    if (md == NULL || moves_begin(&s, &m, true) != CLI_OK)
        return CLI_FAILED;
    tell(a, &m);
    return throttle_take(&s, md, throttled);
}

const struct command cmd_reassign_cancel = {
    .name = "cancel",
    .operands = "[FILE]",
    .operands_max = 1,
    .summary = "Takes back what klog reassign run began",
    .text = "With a plan, only its partitions; else all. What has come to its end stays. The throttle is taken away.",
    .examples = "klog reassign cancel\n"
                "klog reassign cancel plan.json",
    .online = true,
    .run = run,
};
