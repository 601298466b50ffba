/* SPDX-License-Identifier: Apache-2.0 */
/* See logdirs.h. What is in one directory, and whether it failed, is lib/store/datadir.h's. */
#include "daemon/storage/logdirs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "daemon/config/broker_config.h"
#include "daemon/config/ranks.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/store/io.h"

enum {
    FIRST_BROKER_ID = 1,
    SEGMENT_FILES_MAX = 512, /* descriptors of segments at rest, over all log directories; twice that may always be in use or unflushed, */
    SEGMENT_FILES_SHARE = 8, /* or one in so many of the limit of the process, where that is more */
};

struct logdirs {
    const struct world *world;
    struct datadir **dirs; /* n of them; NULL only while they are being opened */
    int n;
    int segment_files;
    struct datadir_identity identity;
    logdir_failed *failed;
    void *arg;
    struct lock mu;
    bool *told; /* guarded by mu: that it has failed */
};

int logdirs_count(const struct logdirs *ld)
{
    return ld->n;
}

struct datadir *logdirs_at(const struct logdirs *ld, int dir)
{
    return ld->dirs[dir];
}

const struct datadir_identity *logdirs_identity(const struct logdirs *ld)
{
    return &ld->identity;
}

int logdirs_segment_files(const struct logdirs *ld)
{
    return ld->segment_files;
}

bool logdirs_were_clean(const struct logdirs *ld)
{
    bool clean = true;
    for (int i = 0; i < ld->n; i++)
        clean &= datadir_was_clean(ld->dirs[i]);
    return clean;
}

/* ---- opening ---- */
/* Under whatever name. */
static bool is_open_dir(const struct logdirs *ld, const char *path)
{
    const struct store_io *io = ld->world->io;
    struct io_stat st, other;
    if (io->statat(io, AT_FDCWD, path, 0, &st) < 0)
        return false;
    for (int i = 0; i < ld->n; i++) {
        if (ld->dirs[i] != NULL && io->fstat(io, datadir_fd(ld->dirs[i]), &other) == 0 && st.dev == other.dev &&
            st.ino == other.ino)
            return true;
    }
    return false;
}

static int open_dir(struct logdirs *ld, int i, const char *path, char *err, size_t err_size)
{
    if (is_open_dir(ld, path)) {
        snprintf(err, err_size, "log.dirs: %s is named twice: name each directory once", path);
        return -EINVAL;
    }
    int rc = datadir_open(path, ld->world, &ld->identity, &ld->dirs[i], err, err_size);
    if (rc == 0)
        datadir_keep_reserve(ld->dirs[i]);
    return rc;
}

static char **list_paths(const char *log_dirs, int *ret_n)
{
    CLEANUP(freep) char *list = xstrdup(log_dirs);
    char **paths = NULL, *save = NULL;
    int n = 0;
    for (char *path = strtok_r(list, ", ", &save); path != NULL; path = strtok_r(NULL, ", ", &save)) {
        paths = xreallocarray(paths, (size_t)n + 1, sizeof(char *));
        paths[n++] = xstrdup(path);
    }
    *ret_n = n;
    return paths;
}

static bool has_identity(const struct store_io *io, const char *path)
{
    CLEANUP(freep) char *file = xasprintf("%s/meta.properties", path);
    struct io_stat st;
    return io->statat(io, AT_FDCWD, file, 0, &st) == 0;
}

bool logdirs_have_identity(const struct world *w, const struct broker_config *cfg)
{
    int n;
    char **paths = list_paths(cfg->log_dirs, &n);
    bool some = false;
    for (int i = 0; i < n; i++) {
        some |= has_identity(w->io, paths[i]);
        free(paths[i]);
    }
    free(paths);
    return some;
}

/* Those that know whose they are come first, so that a new one learns it from them. */
static int open_each(struct logdirs *ld, char *const *paths, char *err, size_t err_size)
{
    CLEANUP(freep) bool *known = xcalloc((size_t)ld->n + 1, sizeof *known);
    int rc = 0;
    for (int i = 0; i < ld->n; i++)
        known[i] = has_identity(ld->world->io, paths[i]);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < ld->n && rc == 0; i++)
            if (known[i] == (pass == 0))
                rc = open_dir(ld, i, paths[i], err, err_size);
    return rc;
}

static void close_unused(struct logdirs *ld)
{
    for (int i = 0; i < ld->n; i++)
        if (ld->dirs[i] != NULL)
            datadir_close(ld->dirs[i], datadir_was_clean(ld->dirs[i]));
    memset(ld->dirs, 0, (size_t)ld->n * sizeof(*ld->dirs));
}

/* Directories that nobody has given a number get this one. They learn it by being opened with it. */
static int number_them(struct logdirs *ld, char *const *paths, char *err, size_t err_size)
{
    close_unused(ld);
    ld->identity.broker_id = FIRST_BROKER_ID;
    return open_each(ld, paths, err, err_size);
}

static int open_all(struct logdirs *ld, char *const *paths, char *err, size_t err_size)
{
    if (ld->n == 0) {
        snprintf(err, err_size, "log.dirs: no directory is named; set log.dirs to where the data shall live");
        return -EINVAL;
    }
    int rc = open_each(ld, paths, err, err_size);
    if (rc == 0 && ld->identity.broker_id < 0)
        rc = number_them(ld, paths, err, err_size);
    return rc;
}

/* The limit of the process is shared: segments at rest may take a third of it, with those that are in use or wait for a flush half of it
 * where it is small, some are kept for what the store opens only for a moment (klogd's main), and connections get what is left
 * (connections_possible). */
static void limit_files(struct logdirs *ld)
{
    const struct machine *m = ld->world->machine;
    int64_t fd_limit = m->fd_limit(m);
    int at_rest = (int)MIN((int64_t)SEGMENT_FILES_MAX, fd_limit / 3);
    int64_t most = MAX((int64_t)2 * SEGMENT_FILES_MAX, fd_limit / SEGMENT_FILES_SHARE);
    ld->segment_files = (int)MIN(MIN(fd_limit / 2, most), (int64_t)INT_MAX);
    for (int i = 0; i < ld->n; i++)
        datadir_set_file_limit(ld->dirs[i], MAX(1, at_rest / ld->n), MAX(1, ld->segment_files / ld->n));
}

static void logdirs_free(struct logdirs *ld)
{
    lock_done(&ld->mu);
    free(ld->told);
    free(ld->dirs);
    free(ld);
}

int logdirs_open(const struct world *w, const struct broker_config *cfg, logdir_failed *failed, void *arg,
                 struct logdirs **ret, char *err, size_t err_size)
{
    struct logdirs *ld = xcalloc(1, sizeof *ld);
    char **paths = list_paths(cfg->log_dirs, &ld->n);

    ld->world = w;
    ld->failed = failed;
    ld->arg = arg;
    ld->identity.broker_id = cfg->broker_id;
    snprintf(ld->identity.cluster_id, sizeof ld->identity.cluster_id, "%s", cfg->cluster_id);
    ld->dirs = xcalloc((size_t)ld->n + 1, sizeof(*ld->dirs));
    ld->told = xcalloc((size_t)ld->n + 1, sizeof *ld->told);
    lock_init(&ld->mu, LOCK_RANK_LOGDIRS, "log directories");
    int rc = open_all(ld, paths, err, err_size);
    for (int i = 0; i < ld->n; i++)
        free(paths[i]);
    free(paths);
    if (rc < 0) {
        close_unused(ld); /* as they were */
        logdirs_free(ld);
        return rc;
    }
    limit_files(ld);
    *ret = ld;
    return 0;
}

bool logdirs_close(struct logdirs *ld, const bool *dir_clean)
{
    bool clean = true;
    for (int i = 0; i < ld->n; i++) {
        bool well = dir_clean[i] && !datadir_failed(ld->dirs[i]);
        datadir_close(ld->dirs[i], well);
        clean &= well;
    }
    logdirs_free(ld);
    return clean;
}

/* ---- failing ---- */
/* False: it was told before. */
static bool note_failed(struct logdirs *ld, int dir, bool *ret_all)
{
    lock_take(&ld->mu);
    bool news = !ld->told[dir];
    ld->told[dir] = true;
    *ret_all = true;
    for (int i = 0; i < ld->n; i++)
        *ret_all &= ld->told[i];
    lock_release(&ld->mu);
    return news;
}

void logdirs_fail(struct logdirs *ld, int dir, int eno)
{
    bool all;
    if (!note_failed(ld, dir, &all))
        return;
    log_error("log directory %s failed: %s; its partitions are offline until klogd is started anew",
              datadir_path(ld->dirs[dir]), strerror(eno));
    ld->failed(ld->arg, dir, all);
}

bool logdirs_note_error(struct logdirs *ld, int dir, int eno)
{
    if (dir < 0 || !datadir_failed(ld->dirs[dir]))
        return false;
    logdirs_fail(ld, dir, eno);
    return true;
}
