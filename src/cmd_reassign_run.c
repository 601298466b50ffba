/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog reassign run: begins what a plan says and waits for its end, which the brokers bring about; ending this command stops nothing.
 * The throttle is there before anything begins, and is taken away at the end. One thread.
 */
#include <poll.h>
#include <unistd.h>

#include "lib/base/attr.h"
#include "src/commands.h"
#include "src/progress.h"
#include "src/reassign_entries.h"

enum { LOOK_MS = 300 };

static const struct option_spec options[] = {
    { "throttle", 0, "BYTES", "copy at most so many bytes a second from each broker, and to each" },
    { "no-wait", 0, NULL, "begin it, and leave a throttle where it is" },
    { NULL, 0, NULL, NULL },
};

/* How much of what is to be copied is there; those that are done are wholly. */
static int64_t copied(struct session *s, const struct moving *m, size_t n, int64_t total)
{
    int64_t left = 0;

    for (size_t i = 0; i < n; i++)
        for (int32_t k = 0; k < m[i].p->n_adding_replicas; k++) {
            int64_t whole = 0;
            for (int32_t r = 0; r < m[i].p->n_replicas; r++)
                whole = MAX(whole, moving_copied(s, &m[i], m[i].p->replicas[r]));
            left += MAX(whole - MAX(moving_copied(s, &m[i], m[i].p->adding_replicas[k]), 0), 0);
        }
    return MAX(total - left, 0);
}

/* Until none of them is going on any more. */
static int wait_for_end(struct session *s, const struct moves *m)
{
    bool show = isatty(STDERR_FILENO) != 0 && !args_has(s->args, "json");
    struct progress bar;
    struct moving *now;
    size_t n;
    int64_t total = -1;

    progress_init(&bar, stderr, show, 0);
    for (;;) {
        if (moving_list(s, m, &now, &n) != CLI_OK) {
            progress_clear(&bar);
            return CLI_FAILED;
        }
        if (n == 0)
            break;
        if (show) {
            if (total < 0)
                total = bar.total = INT64_MAX - copied(s, now, n, INT64_MAX); /* what is left now is all there is to do */
            char what[40];
            snprintf(what, sizeof what, "%zu partitions to go", n);
            progress_add(&bar, MAX(copied(s, now, n, total) - bar.done, 0), what);
        }
        poll(NULL, 0, LOOK_MS);
    }
    progress_clear(&bar);
    return CLI_OK;
}

/* Somebody may have cancelled it, or asked for something else meanwhile. */
static int check_end(struct session *s, const struct moves *m)
{
    const struct metadata_response *md = moves_metadata(s, m);
    json_t *rows = json_array();
    int rc = md == NULL ? CLI_FAILED : CLI_OK;

    for (size_t i = 0; md != NULL && i < m->n; i++) {
        const struct metadata_response_partitions *p = moves_partition(md, &m->at[i]);
        bool same = p->n_replica_nodes == m->at[i].n;
        for (int32_t k = 0; same && k < m->at[i].n; k++)
            same = p->replica_nodes[k] == m->at[i].replicas[k];
        if (!same) {
            complain(s->args, "%s partition %d has other replicas in the end", m->at[i].topic, m->at[i].partition);
            rc = CLI_FAILED;
        }
        json_array_append_new(rows, json_pack("{s:s, s:i, s:o, s:b}", "topic", m->at[i].topic, "partition", (int)m->at[i].partition,
                                              "replicas", json_numbers(p->replica_nodes, p->n_replica_nodes), "done", (int)same));
    }
    if (args_has(s->args, "json"))
        out_rows(stdout, true, NULL, rows);
    else
        json_decref(rows);
    return rc;
}

static int begin(struct session *s, const struct moves *m, const struct metadata_response *md, int64_t rate)
{
    int rc = rate == 0 ? CLI_OK : throttle_put(s, md, m, rate);

    return rc != CLI_OK ? rc : moves_begin(s, m, false);
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    struct moves m;
    int64_t rate;
    int rc = args_get_int(a, "throttle", 1, INT64_MAX - 1, 0, &rate);

    if (rc != CLI_OK || (rc = session_init(&s, a)) != CLI_OK || (rc = moves_read(&s, a->operands[0], &m)) != CLI_OK ||
        (rc = session_connect(&s)) != CLI_OK)
        return rc;
    const struct metadata_response *md = moves_metadata(&s, &m);
    if (md == NULL)
        return CLI_FAILED;
    bool begun = begin(&s, &m, md, rate) == CLI_OK;
    if (args_has(a, "no-wait"))
        return begun ? CLI_OK : CLI_FAILED;
    bool ended = wait_for_end(&s, &m) == CLI_OK;
    if (!ended)
        return CLI_FAILED;
    bool taken = throttle_take(&s, md, &m) == CLI_OK;
    return check_end(&s, &m) == CLI_OK && begun && taken ? CLI_OK : CLI_FAILED;
}

const struct command cmd_reassign_run = {
    .name = "run",
    .operands = "FILE",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Moves replicas as a plan says, and waits until that is done",
    .text = "FILE is JSON of klog reassign plan or kafka-reassign-partitions; '-' is standard input. The brokers do it by themselves, so that\n"
            "this command may be interrupted: the same again waits for the rest and takes the throttle away, as the end does, whoever has\n"
            "set it. With another --throttle the rate is changed while it goes on.",
    .exits = "0 all partitions have their replicas; 1 some have not, or it cannot be told; 2 it was called wrongly.",
    .examples = "klog reassign run plan.json\n"
                "klog reassign run plan.json --throttle 20000000",
    .options = options,
    .online = true,
    .run = run,
};
