/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of a cluster on this machine: finding them by their command lines, starting and ending them; see cluster.h.
 * A process that has been found may be another's by the time it is signalled, so that its command line is read once more
 * through a descriptor of the process. One thread.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <netinet/in.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fsutil.h"
#include "lib/base/mem.h"
#include "src/cluster.h"

#define ZOOKEEPER_JAR  "/usr/share/java/zookeeper.jar"
#define ZOOKEEPER_MAIN "org.apache.zookeeper.server.quorum.QuorumPeerMain"

enum {
    CMDLINE_MAX = 16384,
    LOOK_AGAIN_MS = 50,
    ANSWER_MS = 1000,
};

/* ---- finding ---- */
/* Is `word` one of the command line's arguments, the program's name aside? */
static bool cmdline_has(const struct bytebuf *line, const char *word)
{
    size_t n = strlen(word) + 1, at = 0;

    while (at < line->n) {
        size_t len = strnlen((const char *)line->p + at, line->n - at) + 1;
        if (at > 0 && len == n && at + n <= line->n && memcmp(line->p + at, word, n) == 0)
            return true;
        at += len;
    }
    return false;
}

/* "PID (COMM) Z ...": it has ended, and nobody has asked how. */
static bool is_zombie(struct bytebuf *stat)
{
    const char *p = strrchr(bytebuf_cstr(stat), ')');

    return p == NULL || (p[1] == ' ' && (p[2] == 'Z' || p[2] == 'X'));
}

/* Files below /proc say that they are empty. */
static bool proc_read(const char *pid, const char *name, struct bytebuf *ret)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%.20s/%s", pid, name);
    CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    int n = fd < 0 ? -errno : fs_pread_full(fd, bytebuf_room(ret, CMDLINE_MAX), CMDLINE_MAX, 0);
    ret->n = (size_t)MAX(n, 0);
    return n > 0;
}

/* Does the process `pid`, a directory of /proc, have both words, and live? */
static bool process_is(const char *pid, const char *one, const char *other)
{
    CLEANUP(bytebuf_done) struct bytebuf line = { 0 };
    CLEANUP(bytebuf_done) struct bytebuf stat = { 0 };

    return proc_read(pid, "cmdline", &line) && cmdline_has(&line, one) && cmdline_has(&line, other) && proc_read(pid, "stat", &stat) &&
           !is_zombie(&stat);
}

/* The files of a container's processes may have the same names, and be others. */
static bool sees_our_files(const char *pid)
{
    struct stat theirs, ours;
    char path[64];

    snprintf(path, sizeof path, "/proc/%.20s/ns/mnt", pid);
    if (stat(path, &theirs) < 0 || stat("/proc/self/ns/mnt", &ours) < 0)
        return true; /* not ours to look at: it is told, and signals will say why they cannot be sent */
    return theirs.st_ino == ours.st_ino && theirs.st_dev == ours.st_dev;
}

static pid_t process_find(const char *one, const char *other)
{
    DIR *proc = opendir("/proc");
    struct dirent *de;
    int64_t pid = 0;

    while (proc != NULL && pid == 0 && (de = readdir(proc)) != NULL) {
        if (isdigit((unsigned char)de->d_name[0]) && process_is(de->d_name, one, other) && sees_our_files(de->d_name))
            args_int(de->d_name, 1, INT32_MAX, &pid);
    }
    if (proc != NULL)
        closedir(proc);
    return (pid_t)pid;
}

pid_t cluster_zookeeper_pid(const struct cluster *c)
{
    return process_find(ZOOKEEPER_MAIN, c->zookeeper_conf);
}

pid_t cluster_broker_pid(const struct cluster_broker *b)
{
    return process_find("--daemonize", b->conf);
}

/* ---- ending ---- */
static struct cluster_ending end_process(const char *one, const char *other, int sig)
{
    struct cluster_ending e = { .pid = process_find(one, other), .pidfd = -1 };
    char pid[16];

    if (e.pid == 0)
        return e;
    snprintf(pid, sizeof pid, "%d", (int)e.pid);
    e.pidfd = pidfd_open(e.pid, 0);
    bool same = e.pidfd >= 0 && process_is(pid, one, other);
    if (e.pidfd < 0 ? errno != ESRCH : same && pidfd_send_signal(e.pidfd, sig, NULL, 0) < 0 && errno != ESRCH)
        e.err = errno;
    if (e.pidfd >= 0 && (!same || e.err != 0)) {
        close(e.pidfd);
        e.pidfd = -1;
    }
    return e;
}

struct cluster_ending cluster_end_broker(const struct cluster_broker *b, int sig)
{
    return end_process("--daemonize", b->conf, sig);
}

struct cluster_ending cluster_end_zookeeper(const struct cluster *c, int sig)
{
    return end_process(ZOOKEEPER_MAIN, c->zookeeper_conf, sig);
}

bool cluster_ended(struct cluster_ending *e, int64_t until_ms)
{
    struct pollfd pfd = { .fd = e->pidfd, .events = POLLIN };
    int n = 0;

    if (e->pidfd < 0)
        return e->err == 0;
    do {
        int64_t left_ms = until_ms - clock_mono_ms();
        n = poll(&pfd, 1, left_ms > 0 ? (int)left_ms : 0);
    } while (n < 0 && errno == EINTR);
    close(e->pidfd);
    e->pidfd = -1;
    return n > 0;
}

/* ---- starting ---- */
static int log_open(const struct cluster *c, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

    if (fd < 0)
        complain(c->args, "%s: %s", path, strerror(errno));
    return fd;
}

/* In the child: a session of its own, nothing to read, all that it says in the log. */
static NORETURN void child_main(int log, const char *program, char *const argv[])
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    setsid();
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(log, STDOUT_FILENO) >= 0 && dup2(log, STDERR_FILENO) >= 0)
        execvp(program, argv);
    dprintf(log, "%s: %s\n", program, strerror(errno));
    _exit(127);
}

/* The process, or -1 after saying why not. */
static pid_t spawn(const struct cluster *c, int log, const char *program, char *const argv[])
{
    pid_t pid = fork();

    if (pid == 0)
        child_main(log, program, argv);
    if (pid < 0)
        complain(c->args, "fork: %s", strerror(errno));
    return pid;
}

char *cluster_find_klogd(void)
{
    static const char *const places[] = { "klogd", "../sbin/klogd", "../daemon/klogd" };
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    for (size_t i = 0; slash != NULL && i < ARRAY_LEN(places); i++) {
        CLEANUP(freep) char *path = xasprintf("%.*s/%s", (int)(slash - self), self, places[i]);
        struct stat st;
        if (access(path, X_OK) == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode))
            return take(&path);
    }
    return xstrdup("klogd");
}

/* The last line of a log that grew from `from` on: why something did not start. */
static void complain_last_line(const struct cluster *c, const char *what, const char *log, off_t from)
{
    CLEANUP(closep) int fd = open(log, O_RDONLY | O_CLOEXEC);
    char text[4097];
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        st.st_size = 0;
    off_t at = MAX(from, st.st_size - (off_t)sizeof text + 1);
    int n = fd < 0 ? 0 : fs_pread_full(fd, text, sizeof text - 1, at);
    while (n > 0 && text[n - 1] == '\n')
        n--;
    text[MAX(n, 0)] = '\0';
    const char *line = strrchr(text, '\n');
    complain(c->args, "%s did not start: %s (%s has more)", what, n > 0 ? (line != NULL ? line + 1 : text) : "it said nothing", log);
}

static off_t size_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? st.st_size : 0;
}

int cluster_start_broker(const struct cluster *c, const struct cluster_broker *b)
{
    CLEANUP(freep) char *klogd = cluster_find_klogd();
    char *const argv[] = { (char *)(uintptr_t) "klogd", (char *)(uintptr_t) "--daemonize", b->conf, NULL };
    char what[32];
    int status;

    if (cluster_broker_pid(b) != 0)
        return CLI_OK;
    off_t from = size_of(b->log);
    CLEANUP(closep) int log = log_open(c, b->log);
    if (log < 0)
        return CLI_FAILED;
    pid_t pid = spawn(c, log, klogd, argv); /* it returns when the broker serves */
    if (pid < 0)
        return CLI_FAILED;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return CLI_FAILED;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return CLI_OK;
    snprintf(what, sizeof what, "broker %d", (int)b->id);
    complain_last_line(c, what, b->log, from);
    return CLI_FAILED;
}

/* ---- ZooKeeper ---- */
/* Asked for `srvr` it tells its mode when it serves. */
bool cluster_zookeeper_serves(const struct cluster *c)
{
    struct sockaddr_in sa = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)c->zookeeper_port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    CLEANUP(closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval tv = { .tv_sec = ANSWER_MS / 1000 };
    char text[4096];
    size_t n = 0;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv) < 0 ||
        connect(fd, (const struct sockaddr *)&sa, sizeof sa) < 0 || send(fd, "srvr", 4, MSG_NOSIGNAL) != 4)
        return false;
    for (ssize_t got = 1; got > 0 && n < sizeof text - 1; n += (size_t)MAX(got, 0))
        got = recv(fd, text + n, sizeof text - 1 - n, 0);
    text[n] = '\0';
    return strstr(text, "\nMode: ") != NULL;
}

static int wait_for_zookeeper(const struct cluster *c, pid_t pid, off_t from)
{
    int64_t until_ms = clock_mono_ms() + c->timeout_ms;
    int status;

    for (;;) {
        if (cluster_zookeeper_serves(c))
            return CLI_OK;
        bool ended = pid > 0 && waitpid(pid, &status, WNOHANG) == pid;
        if (ended || clock_mono_ms() >= until_ms) {
            complain_last_line(c, "ZooKeeper", c->zookeeper_log, from);
            return CLI_FAILED;
        }
        poll(NULL, 0, LOOK_AGAIN_MS);
    }
}

int cluster_start_zookeeper(const struct cluster *c)
{
    /* Debian's, with as little memory and as fast a start as a ZooKeeper for one machine needs. */
    static const char *const command[] = {
        "java", "-Xms16m", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Djava.awt.headless=true",
        "-Dzookeeper.jmx.log4j.disable=true", "-cp", ZOOKEEPER_JAR, ZOOKEEPER_MAIN,
    };
    char *argv[ARRAY_LEN(command) + 2] = { NULL };

    if (cluster_zookeeper_pid(c) != 0)
        return wait_for_zookeeper(c, 0, size_of(c->zookeeper_log));
    if (access(ZOOKEEPER_JAR, R_OK) < 0) {
        complain(c->args, ZOOKEEPER_JAR ": %s; ZooKeeper is needed (as root: apt-get install libzookeeper-java default-jre-headless)",
                 strerror(errno));
        return CLI_FAILED;
    }
    if (cluster_zookeeper_serves(c)) {
        complain(c->args, "another ZooKeeper has port %d already (clientPort in %s)", (int)c->zookeeper_port, c->zookeeper_conf);
        return CLI_FAILED;
    }
    for (size_t i = 0; i < ARRAY_LEN(command); i++)
        argv[i] = (char *)(uintptr_t)command[i];
    argv[ARRAY_LEN(command)] = c->zookeeper_conf;
    off_t from = size_of(c->zookeeper_log);
    CLEANUP(closep) int log = log_open(c, c->zookeeper_log);
    pid_t pid = log < 0 ? -1 : spawn(c, log, command[0], argv);
    return pid < 0 ? CLI_FAILED : wait_for_zookeeper(c, pid, from);
}
