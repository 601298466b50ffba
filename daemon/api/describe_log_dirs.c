/* SPDX-License-Identifier: Apache-2.0 */
/* DescribeLogDirs: what lies where and how large it is. Asks the file system for its space: on a worker. */
#include <string.h>

#include "daemon/api/api.h"
#include "daemon/api/services.h"
#include "daemon/replica/partition.h"
#include "daemon/storage/logdirs.h"
#include "lib/base/mem.h"

struct describe_log_dirs {
    struct request *r;
    struct job job;
    struct describe_log_dirs_response rsp;
    struct partition **all; /* references; sorted by directory, topic, partition */
    size_t n_all;
};

static bool is_asked_for(const struct describe_log_dirs_request *q, const struct partition *pt)
{
    if (q->n_topics < 0)
        return true;
    for (int32_t i = 0; i < q->n_topics; i++) {
        if (!kstr_eqz(q->topics[i].topic, pt->topic))
            continue;
        for (int32_t k = 0; k < q->topics[i].n_partitions; k++)
            if (q->topics[i].partitions[k] == pt->id)
                return true;
    }
    return false;
}

static void collect(void *arg, struct partition *pt)
{
    struct describe_log_dirs *d = arg;
    if (pt->dir < 0 || pt->log == NULL || !is_asked_for(d->r->body, pt))
        return;
    d->all = xreallocarray(d->all, d->n_all + 1, sizeof(struct partition *));
    d->all[d->n_all++] = partition_ref(pt);
}

static int compare(const void *a, const void *b)
{
    const struct partition *x = *(struct partition *const *)a, *y = *(struct partition *const *)b;
    if (x->dir != y->dir)
        return x->dir < y->dir ? -1 : 1;
    int by_name = strcmp(x->topic, y->topic);
    return by_name != 0 ? by_name : (x->id > y->id) - (x->id < y->id);
}

static void describe_partition(struct partition *pt, struct describe_log_dirs_response_partitions *out)
{
    struct plog_ends ends;
    plog_ends(pt->log, &ends);
    out->partition_index = pt->id;
    out->partition_size = ends.size_bytes;
}

/* The topics among all[from..to), which lie in one directory. */
static void describe_topics(struct describe_log_dirs *d, size_t from, size_t to,
                            struct describe_log_dirs_response_results *out)
{
    struct arena *a = &d->r->arena;
    out->topics = arena_array(a, to - from, sizeof *out->topics);
    while (from < to) {
        size_t end = from + 1;
        while (end < to && strcmp(d->all[end]->topic, d->all[from]->topic) == 0)
            end++;
        struct describe_log_dirs_response_topics *t = &out->topics[out->n_topics++];
        t->name = kstr_of(arena_strdup(a, d->all[from]->topic));
        t->partitions = arena_array(a, end - from, sizeof *t->partitions);
        for (; from < end; from++)
            describe_partition(d->all[from], &t->partitions[t->n_partitions++]);
    }
}

static void describe_dir(struct describe_log_dirs *d, int dir, size_t *at)
{
    struct describe_log_dirs_response_results *out = &d->rsp.results[dir];
    const struct datadir *dd = logdirs_at(d->r->services->dirs, dir);
    size_t from = *at;
    while (*at < d->n_all && d->all[*at]->dir == dir)
        ++*at;
    out->log_dir = kstr_of(datadir_path(dd));
    out->total_bytes = out->usable_bytes = -1;
    if (datadir_failed(dd)) {
        out->error_code = KERR_KAFKA_STORAGE_ERROR;
        return;
    }
    if (d->r->api_version >= 4)
        datadir_space(dd, &out->total_bytes, &out->usable_bytes);
    describe_topics(d, from, *at, out);
}

static void describe_run(struct job *j)
{
    struct describe_log_dirs *d = container_of(j, struct describe_log_dirs, job);
    const struct services *sv = d->r->services;
    partitions_each(sv->partitions, collect, d);
    if (d->n_all > 0)
        qsort(d->all, d->n_all, sizeof(struct partition *), compare);
    d->rsp.n_results = logdirs_count(sv->dirs);
    d->rsp.results = arena_array(&d->r->arena, (size_t)d->rsp.n_results, sizeof *d->rsp.results);
    size_t at = 0;
    for (int i = 0; i < d->rsp.n_results; i++)
        describe_dir(d, i, &at);
    for (size_t i = 0; i < d->n_all; i++)
        partition_unref(d->all[i]);
    free(d->all);
}

static void describe_done(struct job *j)
{
    struct describe_log_dirs *d = container_of(j, struct describe_log_dirs, job);
    request_reply(d->r, &d->rsp);
}

void handle_describe_log_dirs(struct request *r)
{
    struct describe_log_dirs *d = arena_alloc(&r->arena, sizeof *d);
    d->r = r;
    wire_defaults(&wire_describe_log_dirs_response, &d->rsp);
    d->job = (struct job){ .run = describe_run, .done = describe_done, .loop = r->loop };
    workers_submit(r->services->workers, &d->job);
}
