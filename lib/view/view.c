/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of paths below a topic (docs/filesystem.md, section 1). Pure. */
#include "lib/view/view.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "lib/base/attr.h"

/* Reads digits; no sign, no overflow. Returns what follows them, or NULL. */
static const char *parse_digits(const char *s, int64_t *ret)
{
    int64_t v = 0;
    int n = 0;
    for (; isdigit((unsigned char)s[n]); n++) {
        int digit = s[n] - '0';
        if (v > (INT64_MAX - digit) / 10)
            return NULL;
        v = v * 10 + digit;
    }
    if (n == 0)
        return NULL;
    *ret = v;
    return s + n;
}

static const char *parse_time(const char *s, struct bound *ret)
{
    *ret = (struct bound){ .kind = BOUND_TIME };
    return when_parse(s, &ret->when);
}

static const char *parse_bound(const char *s, struct bound *ret)
{
    int64_t v;
    if (strncmp(s, "start", 5) == 0) {
        *ret = (struct bound){ .kind = BOUND_START };
        return s + 5;
    }
    if (strncmp(s, "end", 3) == 0) {
        *ret = (struct bound){ .kind = BOUND_END };
        return s + 3;
    }
    enum bound_kind kind = *s == '-' ? BOUND_LAST : *s == '+' ? BOUND_FIRST : BOUND_OFFSET;
    if ((s = parse_digits(s + (kind != BOUND_OFFSET), &v)) == NULL)
        return NULL;
    *ret = (struct bound){ .kind = kind, .value = v };
    return s;
}

bool range_parse(const char *text, struct range *ret)
{
    struct range r = { .from = { .kind = BOUND_NONE } };
    bool time = *text == '@';
    const char *(*bound)(const char *, struct bound *) = time ? parse_time : parse_bound;
    const char *s = text + time;
    if (*s != ':' && (s = bound(s, &r.from)) == NULL)
        return false;
    if (*s == ':' && (s = bound(s + 1, &r.to)) == NULL)
        return false;
    if (*s != '\0')
        return false;
    *ret = r;
    return true;
}

static bool view_enter_group(const struct view *v, const char *name, struct view *ret)
{
    if (!group_name_ok(name))
        return false;
    if (ret != v)
        *ret = *v;
    memcpy(ret->group, name, strlen(name) + 1);
    ret->parts = (ret->parts & ~VIEW_AS_OPEN) | VIEW_AS;
    return true;
}

/* Which part `name` asks for; 0: none. json and tsv are two forms of the same thing: one excludes the other.
 */
static unsigned view_part_of(const char *name, struct range *ret_range, unsigned *ret_excludes)
{
    static const struct {
        const char *name;
        unsigned part, excludes;
    } words[] = {
        { "follow", VIEW_FOLLOW, VIEW_FOLLOW },
        { "json", VIEW_JSON, VIEW_JSON | VIEW_TSV },
        { "tsv", VIEW_TSV, VIEW_JSON | VIEW_TSV },
        { "as", VIEW_AS_OPEN, VIEW_AS | VIEW_AS_OPEN },
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(name, words[i].name) == 0) {
            *ret_excludes = words[i].excludes;
            return words[i].part;
        }
    }
    *ret_excludes = VIEW_RANGE;
    return range_parse(name, ret_range) ? VIEW_RANGE : 0;
}

bool view_enter(const struct view *v, const char *name, struct view *ret)
{
    if (v->parts & VIEW_AS_OPEN)
        return view_enter_group(v, name, ret);
    unsigned excludes;
    struct range range = v->range;
    unsigned part = view_part_of(name, &range, &excludes);
    if (part == 0 || (v->parts & excludes) != 0)
        return false;
    if (ret != v)
        *ret = *v;
    ret->parts |= part;
    ret->range = range;
    return true;
}

/* ---- which records ---- */

static int64_t bound_ms(const struct bound *b, int64_t now_ms)
{
    return MAX(when_ms(b->when, now_ms), 0); /* below are names of ends */
}

bool range_time(const struct range *r, int64_t now_ms, int64_t *ret_ms)
{
    if (r->from.kind != BOUND_TIME)
        return false;
    *ret_ms = bound_ms(&r->from, now_ms);
    return true;
}

/* otherwise: where there is no bound, or it is a time. */
static int64_t bound_offset(const struct bound *b, int64_t start, int64_t end, int64_t otherwise)
{
    int64_t room = MAX(end - start, 0);
    switch (b->kind) {
    case BOUND_OFFSET:
        return b->value;
    case BOUND_LAST:
        return end - MIN(b->value, room);
    case BOUND_FIRST:
        return start + MIN(b->value, room);
    case BOUND_START:
        return start;
    case BOUND_END:
        return end;
    case BOUND_NONE:
    case BOUND_TIME:
        break;
    }
    return otherwise;
}

/* A time at the end means each record's own, since records need not come in the order of their times. */
void range_resolve(const struct range *r, int64_t now_ms, int64_t start, int64_t end, int64_t found, struct extent *ret)
{
    int64_t otherwise = r->from.kind != BOUND_TIME ? start : found >= 0 ? found : end;
    *ret = EXTENT_ALL;
    ret->from = MAX(bound_offset(&r->from, start, end, otherwise), start);
    ret->to = MAX(bound_offset(&r->to, start, end, INT64_MAX), ret->from);
    if (r->to.kind != BOUND_TIME)
        return;
    ret->time_to = bound_ms(&r->to, now_ms);
    if (r->from.kind == BOUND_TIME)
        ret->time_from = bound_ms(&r->from, now_ms);
    if (ret->time_to <= ret->time_from)
        ret->to = ret->from;
}

/* ---- whole paths ---- */

/* The next name of a path, cut off; NULL: there is none, or one too long for any. */
static const char *path_piece(const char **s, char *buf, size_t size)
{
    *s += strspn(*s, "/");
    size_t n = strcspn(*s, "/");
    if (n == 0 || n >= size)
        return NULL;
    memcpy(buf, *s, n);
    buf[n] = '\0';
    *s += n;
    return buf;
}

/* What stands beside the partitions, and these. */
static bool path_leaf(const char *name, struct view_path *ret)
{
    if ((ret->view.parts & VIEW_AS_OPEN) != 0)
        return false;
    ret->partition = -1;
    if (view_partition_parse(name, &ret->partition))
        ret->leaf = LEAF_PARTITION;
    else if (strcmp(name, "any") == 0)
        ret->leaf = LEAF_ANY;
    else if (strcmp(name, "all") == 0)
        ret->leaf = LEAF_ALL;
    else
        return false;
    return true;
}

bool view_path_parse(const char *text, struct view_path *ret)
{
    char name[NAME_MAX + 1];
    struct view_path p = { .leaf = LEAF_DIRECTORY, .partition = -1 };
    const char *s = text;
    if (path_piece(&s, name, sizeof name) == NULL || !topic_name_ok(name))
        return false;
    memcpy(p.topic, name, strlen(name) + 1);
    while (s += strspn(s, "/"), *s != '\0') {
        if (p.leaf != LEAF_DIRECTORY || path_piece(&s, name, sizeof name) == NULL ||
            (!path_leaf(name, &p) && !view_enter(&p.view, name, &p.view)))
            return false;
    }
    *ret = p;
    return true;
}
