/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog cat: what the mount's paths hold, one after the other, on standard output. The bytes are those of the mount. Whatever is here
 * is written before more is waited for, so a terminal sees each line as it comes, and a pipe gets large writes. One thread.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/client/reading.h"
#include "src/commands.h"
#include "src/paths.h"
#include "src/stream.h"

/* Reads it to its end. */
static int cat_path(struct session *s, const char *text)
{
    struct path p;
    struct stream st;
    int rc = path_find(s, text, &p);
    if (rc == CLI_OK)
        rc = path_may_read(s, &p);
    if (rc != CLI_OK)
        return rc;
    stream_open(s, &p, &p.at.view, &st);
    while ((rc = stream_next(&st)) == STREAM_SOME) {
        if (!stream_write(&st))
            break;
    }
    rc = stream_status(&st, rc);
    stream_close(&st);
    return rc;
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    const char **paths;
    size_t n;
    int status = CLI_OK;
    int rc = session_init(&s, a);
    if (rc != CLI_OK || (rc = session_connect(&s)) != CLI_OK ||
        (rc = paths_expand(&s, a->operands, a->n_operands, &paths, &n)) != CLI_OK)
        return rc;
    for (size_t i = 0; i < n && status != CLI_USAGE; i++) {
        rc = cat_path(&s, paths[i]);
        status = rc == CLI_OK ? status : rc;
    }
    return status;
}

const struct command cmd_cat = {
    .name = "cat",
    .operands = "PATH...",
    .operands_min = 1,
    .operands_max = -1,
    .summary = "Prints records as the mount would show them, without a mount",
    .text = "PATH is one of the mount's, below its root: TOPIC, views, and p0, p1, ..., or all for one stream of all partitions "
            "merged by time.\n"
            "Views nest in any order: json, tsv, follow, or which records: 100:200, -100, @-1h, @10:00:11:00 (klogfs(8)).\n"
            "TOPIC/p* stands for each partition, one after the other.",
    .examples = "klog cat orders/p0\n"
                "klog cat orders/json/@-1h/all | jq .key\n"
                "klog cat 'orders/-100/p*'",
    .online = true,
    .run = run,
};
