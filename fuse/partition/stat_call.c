/* SPDX-License-Identifier: Apache-2.0 */
/* The question and the answer of KlogStat; see stat_call.h. Pure. */
#include "fuse/partition/stat_call.h"

#include <stdlib.h>
#include <string.h>

struct place { /* of one partition in question and answer */
    const char *topic;
    struct uuid topic_id;
    int32_t partition;
};

static struct place place_of(const struct pfile *f)
{
    return (struct place){ pfile_topic(f), f->key.topic->id, pfile_partition(f) };
}

/* A topic and the one that was made anew under its name may both be in one question. */
static int compare_places(const struct place *a, const struct place *b)
{
    int d = strcmp(a->topic, b->topic);
    if (d == 0)
        d = memcmp(&a->topic_id, &b->topic_id, sizeof a->topic_id);
    return d != 0 ? d : (a->partition > b->partition) - (a->partition < b->partition);
}

static int compare_files(const void *x, const void *y)
{
    struct place a = place_of(*(struct pfile *const *)x), b = place_of(*(struct pfile *const *)y);
    return compare_places(&a, &b);
}

static struct klog_stat_request_topics *topic_for(struct klog_stat_request *req, struct arena *a,
                                                  const struct topic *of, size_t partitions_max)
{
    struct klog_stat_request_topics *t = req->n_topics > 0 ? &req->topics[req->n_topics - 1] : NULL;
    if (t != NULL && kstr_eqz(t->name, of->name) && uuid_eq(&t->topic_id, &of->id))
        return t;
    t = &req->topics[req->n_topics++];
    t->name = kstr_of(of->name);
    t->topic_id = of->id;
    t->partitions = arena_array(a, partitions_max, sizeof *t->partitions);
    return t;
}

void stat_build(struct arena *a, struct pfile **files, size_t n, int32_t max_wait_ms, bool known,
                struct klog_stat_request *ret)
{
    qsort(files, n, sizeof *files, compare_files);
    wire_defaults(&wire_klog_stat_request, ret);
    ret->max_wait_ms = max_wait_ms;
    ret->topics = arena_array(a, n, sizeof *ret->topics);
    for (size_t i = 0; i < n; i++) {
        struct klog_stat_request_topics *t = topic_for(ret, a, files[i]->key.topic, n - i);
        struct klog_stat_request_partitions *p = &t->partitions[t->n_partitions++];
        p->index = pfile_partition(files[i]);
        p->known_end_offset = known ? files[i]->watched_end : -1;
    }
}

/* The file for a place in the answer; files are sorted. */
static struct pfile *file_at(struct pfile **files, size_t n, const struct place *at)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        struct place here = place_of(files[mid]);
        int d = compare_places(at, &here);
        if (d == 0)
            return files[mid];
        if (d < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

static struct ends ends_of(const struct klog_stat_response_partitions *p)
{
    return (struct ends){ .leader_epoch = p->leader_epoch,
                          .start_offset = p->start_offset,
                          .end_offset = p->end_offset,
                          .start_text = p->start_text,
                          .end_text = p->end_text,
                          .size_bytes = p->size_bytes,
                          .newest_ms = p->newest_timestamp,
                          .era = p->text_era };
}

/* What no log can be is taken as the broker's error rather than believed. */
static bool ends_sane(const struct ends *e)
{
    return e->start_offset >= 0 && e->start_offset <= e->end_offset && e->start_text >= 0 &&
           e->start_text <= e->end_text && e->end_text < INT64_MAX / 2;
}

void stat_each(const struct klog_stat_response *resp, struct pfile **files, size_t n,
               void (*f)(void *arg, struct pfile *file, enum kerr err, const struct ends *e), void *arg)
{
    for (int32_t i = 0; i < resp->n_topics; i++) {
        const struct klog_stat_response_topics *t = &resp->topics[i];
        char *name = kstr_dup(t->name);
        for (int32_t j = 0; name != NULL && j < t->n_partitions; j++) {
            struct place at = { name, t->topic_id, t->partitions[j].index };
            struct pfile *file = file_at(files, n, &at);
            struct ends e = ends_of(&t->partitions[j]);
            enum kerr err = t->partitions[j].error_code;
            if (file != NULL)
                f(arg, file, err == KERR_NONE && !ends_sane(&e) ? KERR_UNKNOWN_SERVER_ERROR : err, &e);
        }
        free(name);
    }
}
