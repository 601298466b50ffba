/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a log directory: make it, lock it, learn whose it is, and whether the last stop was clean. Whatever does not fit
 * is refused before a byte of the directory is changed, with one line for people. The clean marker is removed durably before
 * anything is appended (S7), so that a crash is never taken for a clean stop. The lock is the kernel's and goes with the
 * process. Thread-safe: all fields but `failed`, which is atomic, are set once.
 */
#include "lib/store/datadir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/store/datadir_int.h"
#include "lib/store/metafiles.h"
#include "lib/store/reserve.h"

#define DIR_MODE 0755

struct datadir {
    const struct world *world; /* set once, as all but `failed` */
    const struct store_io *io; /* the world's */
    char *path;
    int fd;
    int lock_fd; /* holds the kernel's lock for as long as it is open */
    struct filecache *files;
    struct meta_properties meta;
    bool was_clean;
    int64_t clean_note; /* found in the marker, or to be put into it; -1 none */
    atomic_bool failed;
    struct reserve reserve;
};

static int make_path(const struct store_io *io, const char *path)
{
    char part[PATH_MAX];
    size_t n = strlen(path);

    if (n == 0 || n >= sizeof part)
        return -ENAMETOOLONG;
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        int rc = io->mkdirat(io, AT_FDCWD, part, DIR_MODE);
        if (rc < 0 && rc != -EEXIST)
            return rc;
    }
    return 0;
}

/* S5, for the names that lead to a new log directory, in whichever start they were made. One that may not be read cannot be
 * synced; whoever gave it to us made it. */
static int sync_path(const struct store_io *io, const char *path)
{
    CLEANUP(freep) char *parent = xstrdup(path);

    for (;;) {
        char *slash = strrchr(parent, '/');
        const char *dir = slash == NULL ? "." : slash == parent ? "/" : parent;
        if (slash != NULL)
            *slash = '\0';
        int rc = io_sync_dir(io, AT_FDCWD, dir);
        if (rc < 0 && rc != -EACCES && rc != -EPERM)
            return rc;
        if (slash == NULL || slash == parent)
            return 0;
    }
}

/* A lock of the kernel goes with the process that held it, however that ended; a file with a pid in it does
 * not. */
static int take_lock(struct datadir *dd)
{
    dd->lock_fd = dd->io->openat(dd->io, dd->fd, LOCK_FILE, O_RDWR | O_CREAT, 0644);
    if (dd->lock_fd < 0)
        return dd->lock_fd;
    return dd->io->trylock(dd->io, dd->lock_fd);
}

/* What an identity may be wrong with; see settle_identity(). */
static int refuse_meta(struct datadir *dd, const char *why, char *err, size_t err_size)
{
    snprintf(err, err_size,
             "%s/" META_FILE " %s; klogd does not guess whose data this is: put back a copy of it (version=0, "
             "cluster.id, broker.id, directory.id), or empty the directory",
             dd->path, why);
    return -EBADMSG;
}

/* Every directory with data has said who it is: only an empty one may be given a name (S14). */
static int read_meta(struct datadir *dd, bool *ret_known, char *err, size_t err_size)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    const char *why = NULL;
    char text[128];
    int holds_data = datadir_holds_data(dd);
    int rc = io_read_file(dd->io, dd->fd, META_FILE, SMALL_FILE_MAX, &b);

    if (holds_data < 0) {
        snprintf(err, err_size, "data directory %s cannot be listed: %s", dd->path, strerror(-holds_data));
        return holds_data;
    }
    *ret_known = rc == 0;
    if (rc == -ENOENT)
        return holds_data ? refuse_meta(dd, "is missing, but there is data", err, err_size) : 0;
    if (rc < 0) {
        snprintf(text, sizeof text, "cannot be read: %s", strerror(-rc));
        why = text;
    } else if (!meta_decode(slice_of(b.p, b.n), &dd->meta)) {
        why = "is damaged or incomplete";
    } else if (dd->meta.version != 0) {
        snprintf(text, sizeof text, "has version %" PRId32 ", which is Kafka's or a newer klog's", dd->meta.version);
        why = text;
    } else if (holds_data && (dd->meta.broker_id < 0 || uuid_is_zero(&dd->meta.directory_id))) {
        why = "does not say all of broker.id and directory.id";
    }
    return why == NULL ? 0 : refuse_meta(dd, why, err, err_size);
}

static int write_meta(struct datadir *dd)
{
    struct bytebuf b = { 0 };

    meta_encode(&dd->meta, &b);
    int rc = io_replace_file(dd->io, dd->fd, ".", META_FILE, b.p, b.n);
    bytebuf_done(&b);
    return rc;
}

static int check_identity(struct datadir *dd, const struct datadir_identity *id, char *err, size_t err_size)
{
    const struct meta_properties *m = &dd->meta;

    if (id->cluster_id[0] != '\0' && strcmp(id->cluster_id, m->cluster_id) != 0) {
        snprintf(err, err_size,
                 "%s belongs to cluster %s, not to %s: give the right data directory, or remove this one",
                 dd->path, m->cluster_id, id->cluster_id);
        return -ESTALE;
    }
    if (id->broker_id >= 0 && m->broker_id >= 0 && id->broker_id != m->broker_id) {
        snprintf(err, err_size,
                 "%s belongs to broker %" PRId32 ", not to %" PRId32
                 ": give the right data directory, or remove this one",
                 dd->path, m->broker_id, id->broker_id);
        return -ESTALE;
    }
    return 0;
}

/* Fills what the file does not say; a directory without data and file gets a new identity. */
static int settle_identity(struct datadir *dd, const struct datadir_identity *id, bool known)
{
    struct meta_properties *m = &dd->meta;
    bool change = !known;

    if (!known) {
        *m = (struct meta_properties){ .broker_id = -1 };
        if (id->cluster_id[0] != '\0')
            snprintf(m->cluster_id, sizeof m->cluster_id, "%s", id->cluster_id);
        else {
            struct uuid u;
            uuid_random(dd->world->random, &u);
            uuid_text(&u, m->cluster_id);
        }
    }
    if (m->broker_id < 0 && id->broker_id >= 0) {
        m->broker_id = id->broker_id;
        change = true;
    }
    if (uuid_is_zero(&m->directory_id)) {
        uuid_random(dd->world->random, &m->directory_id);
        change = true;
    }
    /* What a start that was killed has left may be in memory only; where the file is, the path has been synced. */
    int rc = known ? io_sync_dir(dd->io, dd->fd, ".") : sync_path(dd->io, dd->path);
    return rc == 0 && change ? write_meta(dd) : rc;
}

/* S7: the marker is gone from the disk before anything of the directory is used. */
static int take_clean_marker(struct datadir *dd, bool known)
{
    struct bytebuf b = { 0 };
    int rc = io_read_file(dd->io, dd->fd, CLEAN_FILE, SMALL_FILE_MAX, &b);

    dd->was_clean =
        rc == 0 && known && clean_decode(slice_of(b.p, b.n), &dd->meta.directory_id, &dd->clean_note);
    bytebuf_done(&b);
    if (rc == -ENOENT)
        return 0;
    rc = dd->io->unlinkat(dd->io, dd->fd, CLEAN_FILE, 0);
    return rc < 0 ? rc : io_sync_dir(dd->io, dd->fd, ".");
}

static int open_steps(struct datadir *dd, struct datadir_identity *identity, char *err, size_t err_size)
{
    const char *what = "cannot be created";
    int rc = make_path(dd->io, dd->path);

    if (rc == 0) {
        what = "cannot be opened";
        rc = dd->fd = dd->io->openat(dd->io, AT_FDCWD, dd->path, O_RDONLY | O_DIRECTORY, 0);
    }
    if (rc >= 0) {
        what = "cannot be locked";
        rc = take_lock(dd);
        if (rc == -EBUSY) {
            snprintf(err, err_size,
                     "%s is in use by another klogd: stop it, or give this one another data directory",
                     dd->path);
            return rc;
        }
    }
    if (rc >= 0) {
        bool known = false;
        rc = read_meta(dd, &known, err, err_size);
        if (rc == 0 && known)
            rc = check_identity(dd, identity, err, err_size);
        if (rc < 0)
            return rc;
        what = "cannot be written";
        rc = settle_identity(dd, identity, known);
        if (rc == 0)
            rc = take_clean_marker(dd, known);
    }
    if (rc < 0)
        snprintf(err, err_size, "data directory %s %s: %s", dd->path, what, strerror(-rc));
    return rc < 0 ? rc : 0;
}

static void datadir_free(struct datadir *dd)
{
    reserve_done(&dd->reserve);
    filecache_free(dd->files);
    if (dd->lock_fd >= 0)
        dd->io->close(dd->io, dd->lock_fd);
    if (dd->fd >= 0)
        dd->io->close(dd->io, dd->fd);
    free(dd->path);
    free(dd);
}

int datadir_open(const char *path, const struct world *w, struct datadir_identity *identity, struct datadir **ret, char *err,
                 size_t err_size)
{
    struct datadir *dd = xcalloc(1, sizeof *dd);

    dd->world = w;
    dd->io = w->io;
    dd->path = xstrdup(path);
    dd->fd = dd->lock_fd = -1;
    dd->clean_note = -1;
    atomic_init(&dd->failed, false);
    reserve_init(&dd->reserve, w);
    int rc = open_steps(dd, identity, err, err_size);
    if (rc < 0) {
        datadir_free(dd);
        return rc;
    }
    dd->files = filecache_new(dd->io, dd->fd, filecache_default_limit(w->machine));
    snprintf(identity->cluster_id, sizeof identity->cluster_id, "%s", dd->meta.cluster_id);
    identity->broker_id = dd->meta.broker_id;
    *ret = dd;
    return 0;
}

void datadir_close(struct datadir *dd, bool clean)
{
    uint8_t marker[CLEAN_BYTES];

    if (dd == NULL)
        return;
    if (clean && !datadir_failed(dd)) {
        clean_encode(&dd->meta.directory_id, dd->clean_note, marker);
        int rc = io_replace_file(dd->io, dd->fd, ".", CLEAN_FILE, marker, sizeof marker);
        if (rc < 0)
            log_debug("no clean-shutdown marker in %s: %s", dd->path, strerror(-rc));
    }
    datadir_free(dd);
}

const char *datadir_path(const struct datadir *dd)
{
    return dd->path;
}

int datadir_fd(const struct datadir *dd)
{
    return dd->fd;
}

const struct uuid *datadir_id(const struct datadir *dd)
{
    return &dd->meta.directory_id;
}

bool datadir_was_clean(const struct datadir *dd)
{
    return dd->was_clean;
}

int64_t datadir_clean_note(const struct datadir *dd)
{
    return dd->clean_note;
}

void datadir_set_clean_note(struct datadir *dd, int64_t note)
{
    dd->clean_note = note;
}

const struct world *datadir_world(const struct datadir *dd)
{
    return dd->world;
}

const struct store_io *datadir_io(const struct datadir *dd)
{
    return dd->io;
}

struct filecache *datadir_files(struct datadir *dd)
{
    return dd->files;
}

void datadir_set_file_limit(struct datadir *dd, int limit, int most)
{
    filecache_set_limit(dd->files, limit, most);
}

void datadir_fail(struct datadir *dd, int eno, const char *what)
{
    if (!atomic_exchange(&dd->failed, true))
        log_debug("data directory %s failed: %s: %s", dd->path, what, strerror(eno));
}

bool datadir_failed(const struct datadir *dd)
{
    return atomic_load(&dd->failed);
}

void datadir_keep_reserve(struct datadir *dd)
{
    reserve_keep(&dd->reserve, dd->fd);
}

bool datadir_is_full(struct datadir *dd)
{
    return reserve_is_spent(&dd->reserve);
}

bool datadir_spend_reserve(struct datadir *dd, int rc)
{
    return (rc == -ENOSPC || rc == -EDQUOT) && reserve_spend(&dd->reserve);
}

void datadir_space(const struct datadir *dd, int64_t *ret_total, int64_t *ret_free)
{
    *ret_total = *ret_free = 0;
    dd->io->space(dd->io, dd->fd, ret_total, ret_free);
}
