/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/store/datadir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/store/datadir_int.h"
#include "lib/store/metafiles.h"
#include "lib/store/reserve.h"

#define DIR_MODE 0755
#define DOOMED   "-delete" /* ends the names of directories being deleted */

struct datadir {
    const struct store_io *io; /* set once, as all but `failed` */
    char *path;
    int fd;
    int lock_fd; /* holds the kernel's lock for as long as it is open */
    struct filecache *files;
    struct meta_properties meta;
    bool was_clean;
    atomic_bool failed;
    struct reserve reserve;
};

static int make_path(const char *path)
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
        if (mkdir(part, DIR_MODE) < 0 && errno != EEXIST)
            return -errno;
    }
    return 0;
}

/* A lock of the kernel goes with the process that held it, however that ended; a file with a pid in it does
 * not. */
static int take_lock(struct datadir *dd)
{
    dd->lock_fd = dd->io->openat(dd->io, dd->fd, LOCK_FILE, O_RDWR | O_CREAT, 0644);
    if (dd->lock_fd < 0)
        return dd->lock_fd;
    if (flock(dd->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? -EBUSY : -errno;
    return 0;
}

static bool read_meta(struct datadir *dd, struct meta_properties *ret)
{
    struct bytebuf b = { 0 };
    bool ok = io_read_file(dd->io, dd->fd, META_FILE, SMALL_FILE_MAX, &b) == 0 &&
              meta_decode(slice_of(b.p, b.n), ret);

    bytebuf_done(&b);
    return ok;
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

/* Fills what the file does not say; a directory without a readable file gets a new identity. */
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
            uuid_random(&u);
            uuid_text(&u, m->cluster_id);
        }
    }
    if (m->broker_id < 0 && id->broker_id >= 0) {
        m->broker_id = id->broker_id;
        change = true;
    }
    if (uuid_is_zero(&m->directory_id)) {
        uuid_random(&m->directory_id);
        change = true;
    }
    return change ? write_meta(dd) : 0;
}

/* S7: the marker is gone from the disk before anything of the directory is used. */
static int take_clean_marker(struct datadir *dd, bool known)
{
    struct bytebuf b = { 0 };
    int rc = io_read_file(dd->io, dd->fd, CLEAN_FILE, SMALL_FILE_MAX, &b);

    dd->was_clean = rc == 0 && known && clean_decode(slice_of(b.p, b.n), &dd->meta.directory_id);
    bytebuf_done(&b);
    if (rc == -ENOENT)
        return 0;
    rc = dd->io->unlinkat(dd->io, dd->fd, CLEAN_FILE, 0);
    return rc < 0 ? rc : io_sync_dir(dd->io, dd->fd, ".");
}

static int open_steps(struct datadir *dd, struct datadir_identity *identity, char *err, size_t err_size)
{
    const char *what = "cannot be created";
    int rc = make_path(dd->path);

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
        bool known = read_meta(dd, &dd->meta);
        rc = known ? check_identity(dd, identity, err, err_size) : 0;
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

int datadir_open(const char *path, const struct store_io *io, struct datadir_identity *identity,
                 struct datadir **ret, char *err, size_t err_size)
{
    struct datadir *dd = xcalloc(1, sizeof *dd);

    dd->io = io == NULL ? &store_io_real : io;
    dd->path = xstrdup(path);
    dd->fd = dd->lock_fd = -1;
    atomic_init(&dd->failed, false);
    reserve_init(&dd->reserve);
    int rc = open_steps(dd, identity, err, err_size);
    if (rc < 0) {
        datadir_free(dd);
        return rc;
    }
    dd->files = filecache_new(dd->io, dd->fd, filecache_default_limit());
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
        clean_encode(&dd->meta.directory_id, marker);
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

const struct store_io *datadir_io(const struct datadir *dd)
{
    return dd->io;
}

struct filecache *datadir_files(struct datadir *dd)
{
    return dd->files;
}

void datadir_set_file_limit(struct datadir *dd, int limit)
{
    filecache_set_limit(dd->files, limit);
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

bool partition_metadata_read(const struct store_io *io, int dirfd, const char *name, struct uuid *ret)
{
    struct bytebuf b = { 0 };
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", name, PARTITION_FILE);
    bool ok = io_read_file(io, dirfd, path, SMALL_FILE_MAX, &b) == 0 &&
              partition_metadata_decode(slice_of(b.p, b.n), ret);
    bytebuf_done(&b);
    return ok;
}

int partition_metadata_write(const struct store_io *io, int dirfd, const char *name, const struct uuid *id)
{
    struct bytebuf b = { 0 };
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", name, PARTITION_FILE);
    partition_metadata_encode(id, &b);
    int rc = io_replace_file(io, dirfd, name, path, b.p, b.n);
    bytebuf_done(&b);
    return rc;
}

bool partition_name_parse(const char *name, char *ret_topic, size_t size, int32_t *ret_partition)
{
    const char *dash = strrchr(name, '-');
    char *end;

    if (dash == NULL || dash == name || dash[1] < '0' || dash[1] > '9' || (size_t)(dash - name) >= size)
        return false;
    errno = 0;
    long v = strtol(dash + 1, &end, 10);
    if (errno != 0 || *end != '\0' || v > INT32_MAX || (dash[1] == '0' && dash[2] != '\0'))
        return false;
    memcpy(ret_topic, name, (size_t)(dash - name));
    ret_topic[dash - name] = '\0';
    *ret_partition = (int32_t)v;
    return true;
}

static DIR *open_dir(int dirfd, const char *name)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (d == NULL && fd >= 0)
        close(fd);
    return d;
}

int datadir_remove_tree(const struct store_io *io, int dirfd, const char *name)
{
    DIR *d = open_dir(dirfd, name);
    const struct dirent *de;
    int rc = 0;

    if (d == NULL)
        return errno == ENOENT ? 0 : -errno;
    while (rc == 0 && (de = readdir(d)) != NULL) {
        if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
            continue;
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", name, de->d_name);
        rc = io->unlinkat(io, dirfd, path, 0);
        if (rc == -ENOENT)
            rc = 0;
    }
    closedir(d);
    if (rc == 0)
        rc = io->unlinkat(io, dirfd, name, AT_REMOVEDIR);
    return rc;
}

static bool is_doomed(const char *name)
{
    size_t n = strlen(name), tail = strlen(DOOMED);
    return n > tail && strcmp(name + n - tail, DOOMED) == 0;
}

int datadir_list(struct datadir *dd,
                 void (*cb)(void *arg, const char *topic, int32_t partition, const struct uuid *topic_id),
                 void *arg)
{
    DIR *d = open_dir(dd->fd, ".");
    const struct dirent *de;

    if (d == NULL)
        return -errno;
    while ((de = readdir(d)) != NULL) {
        char topic[NAME_MAX + 1];
        int32_t partition;
        struct uuid id = { 0 };

        if (de->d_type != DT_DIR && de->d_type != DT_UNKNOWN)
            continue;
        if (is_doomed(de->d_name))
            datadir_remove_tree(dd->io, dd->fd, de->d_name);
        else if (partition_name_parse(de->d_name, topic, sizeof topic, &partition)) {
            partition_metadata_read(dd->io, dd->fd, de->d_name, &id);
            cb(arg, topic, partition, &id);
        }
    }
    closedir(d);
    return 0;
}

void datadir_space(const struct datadir *dd, int64_t *ret_total, int64_t *ret_free)
{
    struct statvfs st;

    *ret_total = *ret_free = 0;
    if (fstatvfs(dd->fd, &st) < 0)
        return;
    *ret_total = (int64_t)(st.f_blocks * st.f_frsize);
    *ret_free = (int64_t)(st.f_bavail * st.f_frsize);
}
