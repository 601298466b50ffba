/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of files that go through to their end: all bytes, over EINTR and short counts. 0 or a count, else -errno; no lines
 * are logged here. fs_remove_tree follows no symbolic links and stops at the first error. What a broker keeps on its disks
 * goes through lib/store/io.h instead. Any thread that may block; no state.
 */
#include "lib/base/fsutil.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
