/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Views: what the directories between a topic and its partitions mean, on the mount and for klog. They are never listed, nest
 * in any order, each at most once: the path is the query. Pure: no I/O, no clock; relative times stay relative until somebody
 * says when now is.
 */
#ifndef KLOG_VIEW_VIEW_H
#define KLOG_VIEW_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/view/names.h"
#include "lib/base/when.h"
#include "lib/view/render.h"

enum view_part {
    VIEW_RANGE = 1 << 0,
    VIEW_FOLLOW = 1 << 1,
    VIEW_JSON = 1 << 2,
    VIEW_TSV = 1 << 3,
    VIEW_AS = 1 << 4,      /* as/GROUP; the group's name is in `group` */
    VIEW_AS_OPEN = 1 << 5, /* the directory as/ itself: its children are groups, not partitions */
};

enum bound_kind {
    BOUND_NONE,   /* left out: from the start, or to the end */
    BOUND_OFFSET, /* value: an offset */
    BOUND_LAST,   /* value: so many records before the end */
    BOUND_FIRST,  /* value: so many records after the start */
    BOUND_START,
    BOUND_END,
    BOUND_TIME,
};

struct bound {
    enum bound_kind kind;
    int64_t value;
    struct when when; /* of a time */
};

struct range {
    struct bound from, to; /* from inclusive, to exclusive */
};

struct view {
    unsigned parts; /* enum view_part bits; 0: the plain view */
    struct range range;
    char group[GROUP_NAME_MAX + 1];
};

/* In which form records are lines there. */
static inline enum line_form view_form(const struct view *v)
{
    return (v->parts & VIEW_JSON) != 0 ? LINE_JSON : (v->parts & VIEW_TSV) != 0 ? LINE_TSV : LINE_PLAIN;
}
/* Goes from view v into the directory `name`. False: no such view there (-> ENOENT). ret may be v. */
bool view_enter(const struct view *v, const char *name, struct view *ret);

/* "100", "100:200", ":200", "-100", "+10", "start", "end", "@TIME", "@TIME:TIME". */
bool range_parse(const char *text, struct range *ret);

/* Which records a range is, in a log of which the ends are known. */
struct extent {
    int64_t from, to;           /* offsets, to exclusive; INT64_MAX: whatever comes */
    int64_t time_from, time_to; /* of those only records of a time in here, in ms, time_to exclusive */
};
#define EXTENT_ALL ((struct extent){ 0, INT64_MAX, INT64_MIN, INT64_MAX })
/* Does it judge each record by its time? */
static inline bool extent_has_times(const struct extent *e)
{
    return e->time_from != INT64_MIN || e->time_to != INT64_MAX;
}
static inline bool extent_has(const struct extent *e, const struct record *r)
{
    return r->offset >= e->from && r->offset < e->to && r->timestamp >= e->time_from && r->timestamp < e->time_to;
}
/* The time (ms since 1970) of which the first record that young has to be found to know where the range begins; false:
 * none. */
bool range_time(const struct range *r, int64_t now_ms, int64_t *ret_ms);
/* start, end: the log's, end exclusive. found: the first record of range_time(); -1: none is that young. Offsets are counted,
 * not records: where compaction or transactions left gaps "-100" may have fewer. */
void range_resolve(const struct range *r, int64_t now_ms, int64_t start, int64_t end, int64_t found, struct extent *ret);

/* ---- whole paths, as klog is given them ---- */
enum leaf { LEAF_DIRECTORY, LEAF_PARTITION, LEAF_ANY, LEAF_ALL };
struct view_path {
    char topic[TOPIC_NAME_MAX + 1];
    struct view view;
    enum leaf leaf;
    int32_t partition;
};
/* "orders/json/@-1h/p0": below the mount's root, with or without a slash before and behind it. False: there is no such path,
 * whatever topics there are. */
bool view_path_parse(const char *text, struct view_path *ret);

#endif
