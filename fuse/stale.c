/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A klogfs that was killed leaves its mount: every access says ENOTCONN until it is detached, and nothing else can be
 * mounted there. So the place is looked at before mounting, and a dead klogfs is taken away; another file system's mount, or
 * a living one, never is. At start, before any thread.
 */
#include "fuse/stale.h"

#include <errno.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/attr.h"
#include "lib/base/mem.h"

extern char **environ;

/* mountinfo writes blanks and the like as \040. */
static void unescape(char *s)
{
    char *to = s;
    for (; *s != '\0'; s++, to++) {
        unsigned c;
        if (*s == '\\' && sscanf(s + 1, "%3o", &c) == 1) {
            *to = (char)c;
            s += 3;
        } else {
            *to = *s;
        }
    }
    *to = '\0';
}

/* "36 35 98:0 / /mnt/klog rw - fuse.klogfs src opts": is this line a klogfs on the mount point? */
static bool line_is_ours(char *line, const char *mountpoint)
{
    char *rest = line, *path = NULL;
    for (int i = 0; i < 5; i++)
        path = strsep(&rest, " ");
    const char *type = rest == NULL ? NULL : strstr(rest, " - ");
    if (path == NULL || type == NULL || strncmp(type, " - fuse.klogfs ", 15) != 0)
        return false;
    unescape(path);
    return strcmp(path, mountpoint) == 0;
}

static bool klogfs_is_on(const char *mountpoint)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t cap = 0;
    bool found = false;
    while (f != NULL && !found && getline(&line, &cap, f) > 0)
        found = line_is_ours(line, mountpoint);
    free(line);
    if (f != NULL)
        fclose(f);
    return found;
}

static int detach(const char *mountpoint)
{
    if (umount2(mountpoint, MNT_DETACH) == 0)
        return 0;
    if (errno != EPERM)
        return -errno;
    const char *const argv[] = { "fusermount3", "-u", "-z", "--", mountpoint, NULL };
    pid_t pid;
    int status, rc = posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ);
    if (rc != 0)
        return -rc;
    if (waitpid(pid, &status, 0) < 0)
        return -errno;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPERM;
}

int stale_clear(const char *mountpoint, char *err, size_t err_size)
{
    struct statfs sf;
    if (!klogfs_is_on(mountpoint))
        return 0;
    /* Not stat(): for a second the kernel knows the answer to that without asking anybody. An error other than of
     * the connection to klogfs is a living klogfs's, whose broker is away. */
    if (statfs(mountpoint, &sf) == 0 || (errno != ENOTCONN && errno != ECONNABORTED)) {
        snprintf(err, err_size, "klogfs is mounted on %s already; umount %s first", mountpoint, mountpoint);
        return -EBUSY;
    }
    int rc = detach(mountpoint);
    if (rc != 0)
        snprintf(err, err_size, "a dead klogfs is on %s and cannot be detached (%s); run fusermount3 -u %s",
                 mountpoint, strerror(-rc), mountpoint);
    return rc;
}
