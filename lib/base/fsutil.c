/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of files that go through to their end: all bytes, over EINTR and short counts, durable where the
 * name says so. 0 or a count, else -errno; no lines are logged here. Any thread that may block; no state.
 * S6: fs_replace_file leaves the old file or the new one, whole, whenever the machine stops: the data is
 * synced before the rename, the directory after it. fs_remove_tree follows no symbolic links and stops at
 * the first error.
 */
#include "lib/base/fsutil.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"

int fs_write_all(int fd, const void *p, size_t n)
{
    const uint8_t *at = p;

    while (n > 0) {
        ssize_t done = write(fd, at, n);
        if (done < 0 && errno != EINTR)
            return -errno;
        if (done > 0) {
            at += done;
            n -= (size_t)done;
        }
    }
    return 0;
}

int fs_pwrite_all(int fd, const void *p, size_t n, off_t at)
{
    const uint8_t *from = p;

    while (n > 0) {
        ssize_t done = pwrite(fd, from, n, at);
        if (done < 0 && errno != EINTR)
            return -errno;
        if (done > 0) {
            from += done;
            at += done;
            n -= (size_t)done;
        }
    }
    return 0;
}

int fs_pread_full(int fd, void *p, size_t n, off_t at)
{
    size_t got = 0;

    while (got < n && got < INT_MAX) {
        ssize_t done = pread(fd, (uint8_t *)p + got, n - got, at + (off_t)got);
        if (done < 0 && errno != EINTR)
            return -errno;
        if (done == 0)
            break;
        if (done > 0)
            got += (size_t)done;
    }
    return (int)got;
}

int fs_read_file(int dirfd, const char *name, size_t max, struct bytebuf *ret)
{
    CLEANUP(closep) int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if ((uint64_t)st.st_size > max || st.st_size > INT_MAX)
        return -EFBIG;
    int got = fs_pread_full(fd, bytebuf_room(ret, (size_t)st.st_size), (size_t)st.st_size, 0);
    if (got < 0)
        return got;
    ret->n += (size_t)got;
    return 0;
}

int fs_sync_dir(int dirfd)
{
    return fsync(dirfd) < 0 ? -errno : 0;
}

static int fs_write_new(int dirfd, const char *name, const void *p, size_t n)
{
    CLEANUP(closep) int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0)
        return -errno;
    int rc = fs_write_all(fd, p, n);
    if (rc == 0 && fsync(fd) < 0)
        rc = -errno;
    return rc;
}

int fs_replace_file(int dirfd, const char *name, const void *p, size_t n)
{
    char tmp[NAME_MAX + 1];

    if ((size_t)snprintf(tmp, sizeof tmp, "%s.tmp", name) >= sizeof tmp)
        return -ENAMETOOLONG;
    int rc = fs_write_new(dirfd, tmp, p, n);
    if (rc == 0 && renameat(dirfd, tmp, dirfd, name) < 0)
        rc = -errno;
    if (rc == 0)
        return fs_sync_dir(dirfd);
    unlinkat(dirfd, tmp, 0);
    return rc;
}

int fs_mkdir_durable(int dirfd, const char *name, mode_t mode)
{
    if (mkdirat(dirfd, name, mode) < 0)
        return errno == EEXIST ? 0 : -errno;
    return fs_sync_dir(dirfd);
}

static int fs_remove_children(int fd);

int fs_remove_tree(int dirfd, const char *name)
{
    if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = fs_remove_children(fd);
    if (rc == 0 && unlinkat(dirfd, name, AT_REMOVEDIR) < 0)
        rc = -errno;
    return rc;
}

/* Takes fd over. */
static int fs_remove_children(int fd)
{
    DIR *d = fdopendir(fd);
    struct dirent *e;
    int rc = 0;

    if (d == NULL) {
        rc = -errno;
        close(fd);
        return rc;
    }
    while (rc == 0 && (e = readdir(d)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            rc = fs_remove_tree(dirfd(d), e->d_name);
    closedir(d);
    return rc;
}

void fs_hold_std_fds(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}
