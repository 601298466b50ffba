/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as operands; see paths.h. One thread. */
#include "src/paths.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"

static int topic_find(struct session *s, struct path *p)
{
    const char *topic = p->at.topic;
    const struct metadata_response *md = session_metadata(s, &topic, 1);
    if (md == NULL)
        return CLI_FAILED;
    if (md->n_topics != 1 || md->topics[0].error_code != KERR_NONE) {
        complain_kerr(s->args, topic, md->n_topics == 1 ? md->topics[0].error_code : KERR_UNKNOWN_TOPIC_OR_PARTITION, KSTR_NULL);
        return CLI_FAILED;
    }
    p->topic_id = md->topics[0].topic_id;
    p->n_partitions = md->topics[0].n_partitions;
    return CLI_OK;
}

int path_find(struct session *s, const char *text, struct path *ret)
{
    struct path p = { .text = text };
    if (!view_path_parse(text, &p.at))
        return complain_usage(s->args, "'%s' is no path; one looks like orders/p0, orders/json/@-1h/p0 or orders/all", text);
    int rc = topic_find(s, &p);
    if (rc != CLI_OK)
        return rc;
    if (p.at.leaf == LEAF_PARTITION && p.at.partition >= p.n_partitions) {
        complain(s->args, "%s: there is no partition %" PRId32 ", %s has %" PRId32, text, p.at.partition, p.at.topic,
                 p.n_partitions);
        return CLI_FAILED;
    }
    *ret = p;
    return CLI_OK;
}

static int path_may(const struct session *s, const struct path *p, enum leaf other, const char *words)
{
    if ((p->at.view.parts & (VIEW_AS | VIEW_AS_OPEN)) != 0)
        return complain_usage(s->args, "%s: a group reads by the mount, or by klog run", p->text);
    if (p->at.leaf != LEAF_PARTITION && p->at.leaf != other)
        return complain_usage(s->args, "%s: name what stands in it: %s", p->text, words);
    return CLI_OK;
}

int path_may_read(const struct session *s, const struct path *p)
{
    return path_may(s, p, LEAF_ALL, "p0, p1, ..., p* for one after the other, or all for one stream");
}

int path_may_append(const struct session *s, const struct path *p)
{
    return path_may(s, p, LEAF_ANY, "p0, p1, ..., or any");
}

const int32_t *path_partitions(struct session *s, const struct path *p, size_t *ret_n)
{
    bool one = p->at.leaf == LEAF_PARTITION;
    size_t n = one ? 1 : (size_t)p->n_partitions;
    int32_t *ret = arena_array(&s->arena, n, sizeof *ret);
    for (size_t i = 0; i < n; i++)
        ret[i] = one ? p->at.partition : (int32_t)i;
    *ret_n = n;
    return ret;
}

/* ---- p* ---- */

static bool is_pattern(const char *text, size_t *ret_front)
{
    const char *slash = strrchr(text, '/');
    if (slash == NULL || strcmp(slash, "/p*") != 0)
        return false;
    *ret_front = (size_t)(slash - text);
    return true;
}

static int expand(struct session *s, const char *text, size_t front, const char ***ret, size_t *n)
{
    struct path p;
    char *dir = arena_alloc(&s->arena, front + 1);
    memcpy(dir, text, front);
    dir[front] = '\0';
    int rc = path_find(s, dir, &p);
    if (rc != CLI_OK)
        return rc;
    const char **names = arena_array(&s->arena, *n + (size_t)p.n_partitions, sizeof *names);
    if (*n > 0)
        memcpy(names, *ret, *n * sizeof *names);
    for (int32_t i = 0; i < p.n_partitions; i++) {
        char *name = arena_alloc(&s->arena, front + 16);
        snprintf(name, front + 16, "%s/p%" PRId32, dir, i);
        names[(*n)++] = name;
    }
    *ret = names;
    return CLI_OK;
}

int paths_expand(struct session *s, const char *const *operands, size_t n, const char ***ret, size_t *ret_n)
{
    const char **names = NULL;
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        size_t front;
        if (is_pattern(operands[i], &front)) {
            int rc = expand(s, operands[i], front, &names, &count);
            if (rc != CLI_OK)
                return rc;
            continue;
        }
        const char **more = arena_array(&s->arena, count + 1, sizeof *more);
        if (count > 0)
            memcpy(more, names, count * sizeof *more);
        more[count++] = operands[i];
        names = more;
    }
    *ret = names;
    *ret_n = count;
    return CLI_OK;
}
