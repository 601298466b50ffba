/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which names can be topics, groups and partitions. A name that is refused here is in no directory of the mount, whatever a
 * broker may know by it; a partition has one name only, so that no two paths lead to it. Pure.
 */
#include "lib/view/names.h"

#include <string.h>

bool topic_name_ok(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    return n >= 1 && n <= TOPIC_NAME_MAX && name[n] == '\0' && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

bool group_name_ok(const char *name)
{
    return topic_name_ok(name);
}

bool view_partition_parse(const char *name, int32_t *ret)
{
    int64_t v = 0;
    if (name[0] != 'p' || name[1] == '\0' || (name[1] == '0' && name[2] != '\0'))
        return false;
    for (const char *s = name + 1; *s != '\0'; s++) {
        v = v * 10 + *s - '0';
        if (*s < '0' || *s > '9' || v >= INT32_MAX)
            return false;
    }
    *ret = (int32_t)v;
    return true;
}
