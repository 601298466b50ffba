/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klogfs and mount.klogfs: options, going to the background, exit status. The process that was called waits
 * until the mount is there (or the reason why not has been told) and leaves the serving to its child.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuse/base/options.h"
#include "fuse/session.h"
#include "fuse/stale.h"
#include "lib/base/fsutil.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/service.h"

#define REASON_MAX 512
/* Chunks of text come and go a megabyte at a time: their memory is kept, not mapped and faulted in anew. */
#define MALLOC_MMAP_FROM  (64 * 1024 * 1024)
#define MALLOC_TRIM_ABOVE (128 * 1024 * 1024)

/* Where log lines go in the background: the journal or a regular file that stderr already is, else the system's log,
 * else nowhere. */
static void background_stderr(void)
{
    struct stat st;
    struct sockaddr_un sa = { .sun_family = AF_UNIX, .sun_path = "/dev/log" };
    if (service_log_to_journal() || (fstat(STDERR_FILENO, &st) == 0 && S_ISREG(st.st_mode)))
        return;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof sa) != 0) {
        closep(&fd);
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    }
    log_set_style(LOG_STYLE_SYSLOG, "klogfs");
    if (fd >= 0)
        dup2(fd, STDERR_FILENO);
    closep(&fd);
}

static void background_stdio(void)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd >= 0) {
        dup2(fd, STDIN_FILENO);
        dup2(fd, STDOUT_FILENO);
    }
    closep(&fd);
    background_stderr();
}

/* Forks. In the child *ret_pipe is where "mounted" or a reason is told; the parent does not return. */
static void go_background(int *ret_pipe)
{
    int p[2];
    char reason[REASON_MAX];
    if (pipe2(p, O_CLOEXEC) != 0)
        return;
    pid_t pid = fork();
    if (pid == 0) {
        close(p[0]);
        setsid();
        *ret_pipe = p[1];
        return;
    }
    close(p[1]);
    ssize_t n = pid < 0 ? 0 : read(p[0], reason, sizeof reason - 1);
    if (n == 1 && reason[0] == '\0')
        exit(EXIT_SUCCESS);
    reason[n > 0 ? n : 0] = '\0';
    fprintf(stderr, "klogfs: %s\n", n > 0 ? reason : "the background process could not start");
    exit(EXIT_FAILURE);
}

static void tell(int *pipe, const char *reason)
{
    if (*pipe < 0) {
        if (reason != NULL)
            service_complain("klogfs", reason);
        return;
    }
    if (reason != NULL)
        fs_write_all(*pipe, reason, strlen(reason));
    else
        fs_write_all(*pipe, "", 1);
    closep(pipe);
    *pipe = -1;
}

/* The kernel ends a whole mount when one request takes longer than this; a read that waits under follow/
 * does. */
static void warn_request_timeout(void)
{
    int seconds = 0;
    FILE *f = fopen("/proc/sys/fs/fuse/default_request_timeout", "re");
    if (f == NULL)
        return;
    if (fscanf(f, "%d", &seconds) == 1 && seconds > 0)
        log_warn("fs.fuse.default_request_timeout is %d: the kernel will end this mount when a read under "
                 "follow/ waits "
                 "longer; set it to 0",
                 seconds);
    fclose(f);
}

/* Modes that let others in are of no use where the kernel lets nobody but the mounter in. */
static void warn_nobody_else(const struct options *opt)
{
    if (!opt->allow_other && opt->modes_matter && (opt->umask & 077) != 077)
        log_warn("uid=, gid= and umask= without allow_other: nobody but who mounted it gets into %s", opt->mountpoint);
}

/* The files that the command line names; -errno and a reason. */
static int open_log_file(const struct options *opt, char *err, size_t err_size)
{
    int rc = opt->log_file == NULL ? 0 : service_log_to(opt->log_file);
    if (rc < 0)
        snprintf(err, err_size, "log file %s: %s", opt->log_file, strerror(-rc));
    return rc;
}

static int write_pid_file(const struct options *opt, char *err, size_t err_size)
{
    int rc = opt->pid_file == NULL ? 0 : service_pid_write(opt->pid_file);
    if (rc < 0)
        snprintf(err, err_size, "pid file %s: %s", opt->pid_file, strerror(-rc));
    return rc;
}

static int serve(const struct options *opt)
{
    char err[REASON_MAX] = "";
    struct mount m;
    int pipe = -1;
    if (!opt->foreground && !opt->debug)
        go_background(&pipe);
    if (open_log_file(opt, err, sizeof err) < 0) {
        tell(&pipe, err);
        return EXIT_FAILURE;
    }
    if (session_start(&m, opt, err, sizeof err) != 0) {
        tell(&pipe, err);
        return EXIT_FAILURE;
    }
    if (write_pid_file(opt, err, sizeof err) < 0) {
        session_end(&m);
        tell(&pipe, err);
        return EXIT_FAILURE;
    }
    if (chdir("/") != 0)
        log_debug("chdir /: %s", strerror(errno));
    warn_request_timeout();
    warn_nobody_else(opt);
    if (!opt->foreground && !opt->debug)
        background_stdio();
    tell(&pipe, NULL);
    service_settled();
    if (opt->foreground || opt->debug)
        log_info("%s is mounted on %s", opt->brokers, opt->mountpoint);
    session_run(&m);
    session_end(&m);
    if (opt->pid_file != NULL)
        service_pid_remove(opt->pid_file);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct options opt;
    char err[REASON_MAX] = "";
    int status = EXIT_FAILURE;
    fs_hold_std_fds();
    mallopt(M_MMAP_THRESHOLD, MALLOC_MMAP_FROM);
    mallopt(M_TRIM_THRESHOLD, MALLOC_TRIM_ABOVE);
    enum options_result r = options_parse(argc, argv, &opt, err, sizeof err);
    if (opt.debug)
        log_set_level(LOG_LEVEL_DEBUG);
    if (r == OPTIONS_HELP || r == OPTIONS_VERSION) {
        if (r == OPTIONS_HELP)
            options_usage();
        else
            printf("klogfs %s\n", PACKAGE_VERSION);
        status = EXIT_SUCCESS;
    } else if (r == OPTIONS_BAD || stale_clear(opt.mountpoint, err, sizeof err) != 0) {
        fprintf(stderr, "klogfs: %s\n", err);
    } else {
        status = opt.fake ? EXIT_SUCCESS : serve(&opt);
    }
    options_done(&opt);
    return status;
}
