/* SPDX-License-Identifier: Apache-2.0 */
/* See reserve.h. Real system calls: the store's table of functions knows no fallocate, and no test needs it to. */
#include "lib/store/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "lib/base/clock.h"

#define RESERVE_FILE  "reserve"
#define RESERVE_BYTES (256 * 1024)
#define RETRY_MS      1000

void reserve_init(struct reserve *r)
{
    *r = (struct reserve){ .dirfd = -1 };
    pthread_mutex_init(&r->mu, NULL);
    atomic_init(&r->spent, false);
}

void reserve_done(struct reserve *r)
{
    pthread_mutex_destroy(&r->mu);
}

/* -ENOSPC, -EDQUOT: there is no room. Any other error: this file system has no such thing. */
static int set_aside(int dirfd)
{
    int fd = openat(dirfd, RESERVE_FILE, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    int rc = -posix_fallocate(fd, 0, RESERVE_BYTES);
    if (rc != 0 && ftruncate(fd, 0) < 0)
        rc = -errno;
    close(fd);
    return rc;
}

/* Under mu. */
static void try_to_keep(struct reserve *r)
{
    int rc = set_aside(r->dirfd);
    r->tried_ms = clock_mono_ms();
    r->kept = rc == 0;
    atomic_store(&r->spent, rc == -ENOSPC || rc == -EDQUOT);
}

void reserve_keep(struct reserve *r, int dirfd)
{
    pthread_mutex_lock(&r->mu);
    r->dirfd = dirfd;
    try_to_keep(r);
    pthread_mutex_unlock(&r->mu);
}

bool reserve_spend(struct reserve *r)
{
    pthread_mutex_lock(&r->mu);
    bool ret = r->kept;
    if (ret) {
        int fd = openat(r->dirfd, RESERVE_FILE, O_WRONLY | O_CLOEXEC);
        ret = fd >= 0 && ftruncate(fd, 0) == 0;
        if (fd >= 0)
            close(fd);
        r->kept = false;
        r->tried_ms = clock_mono_ms();
        atomic_store(&r->spent, true);
    }
    pthread_mutex_unlock(&r->mu);
    return ret;
}

bool reserve_is_spent(struct reserve *r)
{
    if (!atomic_load(&r->spent))
        return false;
    pthread_mutex_lock(&r->mu);
    if (atomic_load(&r->spent) && clock_mono_ms() - r->tried_ms >= RETRY_MS)
        try_to_keep(r);
    pthread_mutex_unlock(&r->mu);
    return atomic_load(&r->spent);
}
