/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process of COMMAND. Its standard input is a sealed file in memory with everything it is to get, so it
 * never waits for klog and never sees half a batch. It has a process group of its own, so that Ctrl-C on a
 * terminal reaches klog alone, and a parent-death signal, so that a killed klog leaves nothing behind that
 * works on what is no longer its own. One thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/check.h"
#include "lib/base/fsutil.h"
#include "lib/base/mem.h"
#include "src/run.h"

/* ---- input ---- */
/* A descriptor at the beginning of the bytes, which nobody can change; or -errno. */
static int input_make(struct kstr input)
{
    CLEANUP(closep) int fd = memfd_create("klog-run", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    int rc = fs_write_all(fd, input.p, (size_t)input.n);
    if (rc < 0)
        return rc;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0 ||
        lseek(fd, 0, SEEK_SET) < 0)
        return -errno;
    return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

/* ---- environment ---- */
static bool is_overridden(const char *entry, const char *const *more)
{
    size_t n = strcspn(entry, "=");

    for (; *more != NULL; more++) {
        if (strncmp(*more, entry, n) == 0 && (*more)[n] == '=')
            return true;
    }
    return false;
}

static char **environment_make(const char *const *more)
{
    size_t n = 0, n_more = 0, made = 0;

    while (environ[n] != NULL)
        n++;
    while (more[n_more] != NULL)
        n_more++;
    char **env = xcalloc(n + n_more + 1, sizeof *env);
    for (size_t i = 0; i < n; i++) {
        if (!is_overridden(environ[i], more))
            env[made++] = environ[i];
    }
    for (size_t i = 0; i < n_more; i++)
        env[made++] = (char *)(uintptr_t)more[i];
    return env;
}

/* ---- the child ---- */
/* Between fork and exec: only what may be done there. Ends in COMMAND, or tells errno through `report`. */
static NORETURN void child_main(const struct child *c, int input, int report, pid_t parent, char *const *env,
                                const sigset_t *mask)
{
    bool ok = prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent && setpgid(0, 0) == 0 &&
              dup2(input, STDIN_FILENO) == STDIN_FILENO && sigprocmask(SIG_SETMASK, mask, NULL) == 0;
    if (ok)
        execvpe(c->command[0], c->command, env);
    int err = errno;
    ssize_t n = write(report, &err, sizeof err);
    (void)n;
    _exit(127);
}

static void child_on_exit(struct loop_fd *w, uint32_t events)
{
    struct child *c = container_of(w, struct child, exit);
    int status;
    (void)events;
    if (waitpid(c->pid, &status, WNOHANG) != c->pid)
        return;
    loop_fd_del(c->loop, w);
    close(w->fd);
    c->pid = 0;
    c->ended(c, status);
}

/* The errno of a child that did not come to its exec; 0 when it did. */
static int report_read(int fd)
{
    int err = 0;
    ssize_t n;
    do
        n = read(fd, &err, sizeof err);
    while (n < 0 && errno == EINTR);
    return n == sizeof err ? err : 0;
}

static int child_watch(struct loop *lp, struct child *c)
{
    int fd = pidfd_open(c->pid, 0);
    if (fd < 0)
        return -errno;
    c->loop = lp;
    c->exit = (struct loop_fd){ .fd = fd, .events = EPOLLIN, .cb = child_on_exit };
    int rc = loop_fd_add(lp, &c->exit);
    if (rc < 0)
        close(fd);
    return rc;
}

int child_start(struct loop *lp, struct child *c, const sigset_t *mask)
{
    CLEANUP(closep) int input = input_make(c->input);
    CLEANUP(freep) char **env = environment_make(c->env);
    int report[2];
    if (input < 0)
        return input;
    if (pipe2(report, O_CLOEXEC) < 0)
        return -errno;
    CLEANUP(closep) int report_in = report[0];
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        child_main(c, input, report[1], parent, env, mask);
    int rc = pid < 0 ? -errno : 0;
    close(report[1]);
    if (rc == 0)
        rc = -report_read(report_in);
    c->pid = pid;
    if (rc == 0)
        rc = child_watch(lp, c);
    if (rc < 0 && pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    return rc;
}

void child_signal(struct child *c, int signal)
{
    KCHECK(c->pid > 0);
    kill(-c->pid, signal);
}

const char *child_status_text(int status, char *ret, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(ret, size, "killed by signal %d", WTERMSIG(status));
    else
        snprintf(ret, size, "exit status %d", WEXITSTATUS(status));
    return ret;
}
