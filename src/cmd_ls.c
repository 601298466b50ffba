/* SPDX-License-Identifier: Apache-2.0 */
/* klog ls: the names that the mount would list, of topics or of a topic's partitions. Views are never listed. One thread. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/commands.h"
#include "src/paths.h"

static int compare_names(const void *x, const void *y)
{
    return kstr_cmp(*(const struct kstr *)x, *(const struct kstr *)y);
}

static int list_topics(struct session *s)
{
    const struct metadata_response *md = session_metadata(s, NULL, 0);
    size_t n = 0;
    if (md == NULL)
        return CLI_FAILED;
    struct kstr *names = arena_array(&s->arena, (size_t)md->n_topics, sizeof *names);
    for (int32_t i = 0; i < md->n_topics; i++) {
        if (md->topics[i].error_code == KERR_NONE && !md->topics[i].is_internal)
            names[n++] = md->topics[i].name;
    }
    qsort(names, n, sizeof *names, compare_names);
    for (size_t i = 0; i < n; i++)
        printf("%.*s\n", KSTR_FMT(names[i]));
    return CLI_OK;
}

static int list_path(struct session *s, const char *text)
{
    struct path p;
    int rc = path_find(s, text, &p);
    if (rc != CLI_OK)
        return rc;
    if (p.at.leaf != LEAF_DIRECTORY)
        printf("%s\n", text);
    for (int32_t i = 0; i < p.n_partitions && p.at.leaf == LEAF_DIRECTORY && (p.at.view.parts & VIEW_AS_OPEN) == 0; i++)
        printf("p%" PRId32 "\n", i);
    return CLI_OK;
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    int rc = session_init(&s, a);
    if (rc != CLI_OK || (rc = session_connect(&s)) != CLI_OK)
        return rc;
    return a->n_operands == 0 || strcmp(a->operands[0], "/") == 0 ? list_topics(&s) : list_path(&s, a->operands[0]);
}

const struct command cmd_ls = {
    .name = "ls",
    .operands = "[PATH]",
    .operands_max = 1,
    .summary = "Lists topics, or the partitions of one, by the names that paths have",
    .examples = "klog ls\n"
                "klog ls orders",
    .online = true,
    .run = run,
};
