/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Views: what the directories between a topic and its partitions mean. They are never listed, nest in any
 * order, each at most once: the path is the query. Pure: no I/O, no clock; relative times stay relative here.
 */
#ifndef KLOG_FUSE_VIEW_H
#define KLOG_FUSE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "fuse/base/names.h"
#include "lib/base/when.h"

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

/* Goes from view v into the directory `name`. False: no such view there (-> ENOENT). ret may be v. */
bool view_enter(const struct view *v, const char *name, struct view *ret);
/* Do its directories hold partitions that can be opened in this version of klogfs? */
bool view_is_built(const struct view *v);

/* "100", "100:200", ":200", "-100", "+10", "start", "end", "@TIME", "@TIME:TIME". */
bool range_parse(const char *text, struct range *ret);

#endif
