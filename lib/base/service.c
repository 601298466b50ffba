/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log file, journal and pid file of a program in the background (see service.h). Descriptor 2 is the only way that log lines take,
 * so that what libraries and sanitizers say there is in the log, too, and to change the file is one dup2(2), which no line is
 * lost at. The path and the earlier descriptor are the process's. Main thread.
 */
#include "lib/base/service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fsutil.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

static const char *log_path; /* NULL: wherever standard error leads */
static int earlier = -1;     /* where it led before; -1: there is none, or nobody looks any more */

static int open_log(const char *path)
{
    CLEANUP(closep) int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0640);
    return fd < 0 || dup2(fd, STDERR_FILENO) < 0 ? -errno : 0;
}

int service_log_to(const char *path)
{
    int before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int rc = open_log(path);
    if (rc < 0) {
        closep(&before);
        return rc;
    }
    earlier = before;
    log_path = path;
    return 0;
}

int service_log_reopen(void)
{
    return log_path == NULL ? 0 : open_log(log_path);
}

void service_complain(const char *program, const char *text)
{
    dprintf(STDERR_FILENO, "%s: %s\n", program, text);
    if (earlier >= 0)
        dprintf(earlier, "%s: %s\n", program, text);
}

void service_settled(void)
{
    closep(&earlier);
    earlier = -1;
}

bool service_log_to_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM"); /* "DEVICE:INODE" of what systemd gave */
    struct stat st;
    char here[64];
    if (stream == NULL || fstat(STDERR_FILENO, &st) != 0)
        return false;
    snprintf(here, sizeof here, "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
    if (strcmp(here, stream) != 0)
        return false;
    log_set_style(LOG_STYLE_JOURNAL, NULL);
    return true;
}

int service_pid_write(const char *path)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    CLEANUP(closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0644);
    return fd < 0 ? -errno : fs_write_all(fd, text, (size_t)n);
}

void service_pid_remove(const char *path)
{
    CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    char text[32];
    int n = fd < 0 ? 0 : fs_pread_full(fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return;
    text[n] = '\0';
    if (strtol(text, NULL, 10) == (long)getpid() && unlink(path) != 0)
        log_warn("pid file %s: %s", path, strerror(errno));
}
