/* SPDX-License-Identifier: Apache-2.0 */
/* What the process is given by the machine that it runs on. Any thread; no state. */
#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/attr.h"
#include "lib/base/world.h"

static int64_t real_fd_limit(const struct machine *m)
{
    (void)m;
    struct rlimit lim;
    if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur == RLIM_INFINITY)
        return INT64_MAX;
    return (int64_t)MIN(lim.rlim_cur, (rlim_t)INT64_MAX);
}

/* Not counting the one that is open while it counts. */
static int64_t real_fds_open(const struct machine *m)
{
    (void)m;
    DIR *d = opendir("/proc/self/fd");
    if (d == NULL)
        return 0;
    int64_t n = -1;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static int real_cores(const struct machine *m)
{
    (void)m;
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return (int)MAX(n, 1L);
}

static void real_host_name(const struct machine *m, char *ret, size_t size)
{
    (void)m;
    if (gethostname(ret, size) < 0 || ret[0] == '\0')
        snprintf(ret, size, "localhost");
    ret[size - 1] = '\0';
}

static void real_die(const struct machine *m, int status)
{
    (void)m;
    _exit(status);
}

const struct machine machine_real = {
    .fd_limit = real_fd_limit,
    .fds_open = real_fds_open,
    .cores = real_cores,
    .host_name = real_host_name,
    .die = real_die,
};
