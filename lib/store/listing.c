/* SPDX-License-Identifier: Apache-2.0 */
/* What files a partition's directory has. Half-written ones (*.tmp) are removed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/attr.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/store/plog_int.h"
#include "lib/store/start_mark.h"

#define DIGITS 20

struct found {
    int64_t *v;
    int n, cap;
};

static void found_add(struct found *f, int64_t v)
{
    if (f->n == f->cap) {
        f->cap = f->cap == 0 ? 16 : f->cap * 2;
        f->v = xreallocarray(f->v, (size_t)f->cap, sizeof *f->v);
    }
    f->v[f->n++] = v;
}

/* "00000000000000000123.log" -> 123 and ".log". */
static bool parse_name(const char *name, int64_t *ret, const char **ret_suffix)
{
    int64_t v = 0;

    for (int i = 0; i < DIGITS; i++) {
        if (name[i] < '0' || name[i] > '9')
            return false;
        int64_t digit = name[i] - '0';
        if (v > (INT64_MAX - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    *ret = v;
    *ret_suffix = name + DIGITS;
    return true;
}

static bool ends_with(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);
    return n >= m && strcmp(s + n - m, tail) == 0;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void take_name(const struct store_io *io, int dirfd, const char *dir, const char *name,
                      struct found *logs, struct found *snapshots, struct found *starts)
{
    int64_t v;
    const char *suffix;

    if (ends_with(name, ".tmp")) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", dir, name);
        io->unlinkat(io, dirfd, path, 0);
    } else if (!parse_name(name, &v, &suffix)) {
        return;
    } else if (strcmp(suffix, ".log") == 0) {
        found_add(logs, v);
    } else if (strcmp(suffix, ".producers") == 0) {
        found_add(snapshots, v);
    } else if (strcmp(suffix, START_SUFFIX) == 0) {
        found_add(starts, v);
    }
}

static void found_sort(struct found *f)
{
    if (f->n > 0)
        qsort(f->v, (size_t)f->n, sizeof *f->v, compare);
}

int listing_read(const struct store_io *io, int dirfd, const char *dir, struct listing *ret)
{
    struct found logs = { 0 }, snapshots = { 0 }, starts = { 0 };
    const struct dirent *de;
    DIR *d = io_opendir(io, dirfd, dir);

    if (d == NULL)
        return -errno;
    while ((de = readdir(d)) != NULL)
        take_name(io, dirfd, dir, de->d_name, &logs, &snapshots, &starts);
    closedir(d);
    found_sort(&logs);
    found_sort(&snapshots);
    found_sort(&starts);
    *ret = (struct listing){
        .logs = logs.v,
        .n_logs = logs.n,
        .snapshots = snapshots.v,
        .n_snapshots = snapshots.n,
        .starts = starts.v,
        .n_starts = starts.n,
    };
    return 0;
}

/* A cache of a segment that is not there, or what Kafka had renamed to remove it later. */
static bool is_orphan(const struct listing *ls, const char *name)
{
    static const char *const caches[] = { ".index", ".timeindex", ".text" };
    const char *suffix;
    int64_t base;

    if (!parse_name(name, &base, &suffix))
        return false;
    if (ends_with(suffix, ".deleted"))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(caches); i++)
        if (strcmp(suffix, caches[i]) == 0)
            return ls->n_logs == 0 ||
                   bsearch(&base, ls->logs, (size_t)ls->n_logs, sizeof *ls->logs, compare) == NULL;
    return false;
}

void listing_remove_orphans(const struct store_io *io, int dirfd, const char *dir, const struct listing *ls)
{
    const struct dirent *de;
    DIR *d = io_opendir(io, dirfd, dir);

    while (d != NULL && (de = readdir(d)) != NULL) {
        char path[PATH_MAX];
        if (!is_orphan(ls, de->d_name))
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, de->d_name);
        int rc = io->unlinkat(io, dirfd, path, 0);
        log_info("%s belongs to no segment: %s", path, rc == 0 ? "removed" : strerror(-rc));
    }
    if (d != NULL)
        closedir(d);
}

void listing_done(struct listing *ls)
{
    free(ls->logs);
    free(ls->snapshots);
    free(ls->starts);
    *ls = (struct listing){ 0 };
}
