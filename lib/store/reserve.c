/* SPDX-License-Identifier: Apache-2.0 */
/* See reserve.h. */
#include "lib/store/reserve.h"

#include <errno.h>
#include <fcntl.h>

#include "lib/store/io.h"

#define RESERVE_FILE  "reserve"
#define RESERVE_BYTES (256 * 1024)
#define RETRY_MS      1000

void reserve_init(struct reserve *r, const struct world *w)
{
    *r = (struct reserve){ .world = w, .dirfd = -1 };
    lock_init(&r->mu, LOCK_RANK_RESERVE, "reserve");
    atomic_init(&r->spent, false);
}

void reserve_done(struct reserve *r)
{
    lock_done(&r->mu);
}

/* -ENOSPC, -EDQUOT: there is no room. Any other error: this file system has no such thing. */
static int set_aside(struct reserve *r)
{
    const struct store_io *io = r->world->io;
    int fd = io->openat(io, r->dirfd, RESERVE_FILE, O_WRONLY | O_CREAT, 0644);
    if (fd < 0)
        return fd;
    int rc = io->fallocate(io, fd, false, 0, RESERVE_BYTES);
    if (rc < 0) {
        int undone = io->ftruncate(io, fd, 0);
        rc = undone < 0 ? undone : rc;
    }
    io->close(io, fd);
    return rc;
}

static int give_up(struct reserve *r)
{
    const struct store_io *io = r->world->io;
    int fd = io->openat(io, r->dirfd, RESERVE_FILE, O_WRONLY, 0);
    if (fd < 0)
        return fd;
    int rc = io->ftruncate(io, fd, 0);
    io->close(io, fd);
    return rc;
}

/* Under mu. */
static void try_to_keep(struct reserve *r)
{
    int rc = set_aside(r);
    r->tried_ms = world_mono_ms(r->world);
    r->kept = rc == 0;
    atomic_store(&r->spent, rc == -ENOSPC || rc == -EDQUOT);
}

void reserve_keep(struct reserve *r, int dirfd)
{
    lock_take(&r->mu);
    r->dirfd = dirfd;
    try_to_keep(r);
    lock_release(&r->mu);
}

bool reserve_spend(struct reserve *r)
{
    lock_take(&r->mu);
    bool ret = r->kept;
    if (ret) {
        ret = give_up(r) == 0;
        r->kept = false;
        r->tried_ms = world_mono_ms(r->world);
        atomic_store(&r->spent, true);
    }
    lock_release(&r->mu);
    return ret;
}

bool reserve_is_spent(struct reserve *r)
{
    if (!atomic_load(&r->spent))
        return false;
    lock_take(&r->mu);
    if (atomic_load(&r->spent) && world_mono_ms(r->world) - r->tried_ms >= RETRY_MS)
        try_to_keep(r);
    lock_release(&r->mu);
    return atomic_load(&r->spent);
}
