/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog config set: one IncrementalAlterConfigs request, so that all changes are made or none. The line is
 * judged before anything is connected; what a key means is judged by the broker. One thread.
 */
#include "src/commands.h"
#include "src/config_entries.h"
#include "src/out.h"

static const struct option_spec options[] = {
    { "delete", 0, "KEY", "back to what the broker has; may be given more than once" },
    { "dry-run", 0, NULL, "let the broker check, change nothing" },
    { NULL, 0, NULL, NULL },
};

static int changes_fill(struct session *s, struct config_change **ret, size_t *ret_n)
{
    const struct args *a = s->args;
    const char *key;
    size_t n = 0;
    struct config_change *changes =
        arena_array(&s->arena, a->n_operands + a->n_options, sizeof *changes); /* no more can come of them */

    for (size_t i = 2; i < a->n_operands; i++) {
        if (!config_change_parse(s, a->operands[i], &changes[n++]))
            return complain_usage(a, "'%s' is not of the form KEY=VALUE, KEY+=VALUE or KEY-=VALUE",
                                  a->operands[i]);
    }
    for (size_t i = 0; (key = args_nth(a, "delete", i)) != NULL; i++)
        changes[n++] = (struct config_change){ key, NULL, CONFIG_OP_DELETE };
    if (n == 0)
        return complain_usage(a, "nothing to change: give KEY=VALUE or --delete KEY");
    *ret = changes;
    *ret_n = n;
    return CLI_OK;
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    struct config_change *changes = NULL;
    struct resource r;
    size_t n = 0;
    int rc = resource_parse(a, &r);

    if (rc != CLI_OK || (rc = session_init(&s, a)) != CLI_OK ||
        (rc = changes_fill(&s, &changes, &n)) != CLI_OK || (rc = session_connect(&s)) != CLI_OK ||
        (rc = resource_find(&s, &r)) != CLI_OK)
        return rc;
    rc = config_apply(&s, &r, changes, n, args_has(a, "dry-run"));
    if (rc == CLI_OK && args_has(a, "json"))
        out_json(stdout, json_pack("{s:s, s:i}", a->operands[0], r.name, "changed", (int)n));
    return rc;
}

const struct command cmd_config_set = {
    .name = "set",
    .operands = "topic|broker NAME [KEY=VALUE...]",
    .operands_min = 2,
    .operands_max = -1,
    .summary = "Changes settings of a topic or a broker, all or none",
    .text = "KEY+=VALUE and KEY-=VALUE add to and take from a setting that is a list.",
    .examples = "klog config set topic orders retention.ms=86400000 segment.bytes=104857600\n"
                "klog config set topic orders --delete retention.ms\n"
                "klog config set topic orders cleanup.policy+=compact --dry-run",
    .options = options,
    .online = true,
    .run = run,
};
