/* SPDX-License-Identifier: Apache-2.0 */
/* See zookeeper_server.h. */
#include "tests/unit/daemon/zookeeper_server.h"

#include "unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/fsutil.h"
#include "lib/base/mem.h"
#include "lib/base/varint.h"

#define ZOOKEEPER_JAR "/usr/share/java/zookeeper.jar"

/* The thread sanitizer sees only half of what a library does that was built without it: what it meets there it passes over, and
 * sees our side. That takes long, and is left to LONG=1. */
#if defined(__SANITIZE_THREAD__)
#define WITH_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WITH_THREAD_SANITIZER 1
#endif
#endif

#ifdef WITH_THREAD_SANITIZER
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "ignore_noninstrumented_modules=1";
}
#endif

const char *zookeeper_missing(void)
{
#ifdef WITH_THREAD_SANITIZER
    if (getenv("LONG") == NULL)
        return "LONG=1 under the thread sanitizer";
#endif
#ifndef HAVE_ZOOKEEPER
    return "libzookeeper-mt-dev at build time";
#endif
    if (access(ZOOKEEPER_JAR, R_OK) < 0)
        return ZOOKEEPER_JAR " (libzookeeper-java)";
    return system("java -version >/dev/null 2>&1") == 0 ? NULL : "java";
}

static struct sockaddr_in address(int port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
    };
}

/* Not of those that the kernel gives to who connects: such a one may be taken while the server is down, even by its own client,
 * which then is connected to itself. */
static int free_port(void)
{
    for (int i = 0;; i++) {
        CLEANUP(closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int port = 10000 + (getpid() + 97 * i) % 20000;
        struct sockaddr_in sa = address(port);
        if (bind(fd, (struct sockaddr *)&sa, sizeof sa) == 0)
            return port;
        assert_in_range(i, 0, 1000);
    }
}

static void write_text(const char *dir, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

void zookeeper_server_init(struct zookeeper_server *z, int port)
{
    *z = (struct zookeeper_server){ .dir = "zookeeper.XXXXXX", .port = port == 0 ? free_port() : port };
    assert_non_null(mkdtemp(z->dir));
    char *text = xasprintf("tickTime=100\nminSessionTimeout=200\nmaxSessionTimeout=60000\ninitLimit=100\nsyncLimit=20\n"
                           "dataDir=%s/data\nclientPort=%d\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
                           "4lw.commands.whitelist=*\nmaxClientCnxns=0\n",
                           z->dir, z->port);
    write_text(z->dir, "zoo.cfg", text);
    free(text);
}

static void run_java(const struct zookeeper_server *z)
{
    char log[128], config[128];
    snprintf(log, sizeof log, "%s/out.log", z->dir);
    snprintf(config, sizeof config, "%s/zoo.cfg", z->dir);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644), null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(fd, 1);
    dup2(fd, 2);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execlp("java", "java", "-Xms16m", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
           "-XX:-UsePerfData", "-cp", ZOOKEEPER_JAR, "-Dzookeeper.forceSync=no", "-Dzookeeper.preAllocSize=64",
           "-Dzookeeper.jmx.log4j.disable=true", "-Djava.awt.headless=true",
           "org.apache.zookeeper.server.quorum.QuorumPeerMain", config, (char *)NULL);
    _exit(127);
}

char *zookeeper_server_ask(const struct zookeeper_server *z, const char *word)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    CLEANUP(closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in sa = address(z->port);
    struct timeval limit = { .tv_sec = 1 }; /* while it starts it may take a word and never answer */
    char part[4096];
    ssize_t n;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&sa, sizeof sa) < 0 || send(fd, word, strlen(word), MSG_NOSIGNAL) < 0)
        return NULL;
    while ((n = recv(fd, part, sizeof part, 0)) > 0)
        bytebuf_add(&b, part, (size_t)n);
    bytebuf_add(&b, "", 1);
    return xstrdup((const char *)b.p);
}

static bool serves(const struct zookeeper_server *z)
{
    CLEANUP(freep) char *answer = zookeeper_server_ask(z, "srvr");
    return answer != NULL && strstr(answer, "Mode:") != NULL;
}

void zookeeper_server_start(struct zookeeper_server *z)
{
    z->pid = fork();
    assert_true(z->pid >= 0);
    if (z->pid == 0)
        run_java(z);
    while (!serves(z)) {
        assert_int_equal(waitpid(z->pid, NULL, WNOHANG), 0); /* else see out.log */
        poll(NULL, 0, 20); /* between two looks */
    }
}

void zookeeper_server_stop(struct zookeeper_server *z)
{
    if (z->pid == 0)
        return;
    kill(z->pid, SIGKILL);
    waitpid(z->pid, NULL, 0);
    z->pid = 0;
}

void zookeeper_server_pause(struct zookeeper_server *z)
{
    int status;
    kill(z->pid, SIGSTOP);
    waitpid(z->pid, &status, WUNTRACED);
}

void zookeeper_server_resume(struct zookeeper_server *z)
{
    kill(z->pid, SIGCONT);
}

/* ---- taking a session over ---- */

/* The password that a server gives a session: 16 bytes of Java's generator, begun with the id and a constant. */
static void session_password(int64_t id, uint8_t ret[16])
{
    uint64_t mask = ((uint64_t)1 << 48) - 1, x = ((uint64_t)id ^ 0xB3415C00u ^ 0x5DEECE66Du) & mask;
    for (int i = 0; i < 16; i += 4) {
        x = (x * 0x5DEECE66Du + 0xB) & mask;
        uint32_t r = (uint32_t)(x >> 16);
        for (int k = 0; k < 4; k++, r >>= 8)
            ret[i + k] = (uint8_t)r;
    }
}

/* 0: nobody has that node. */
static int64_t session_of(const struct zookeeper_server *z, const char *path)
{
    CLEANUP(freep) char *dump = zookeeper_server_ask(z, "dump");
    int64_t id = 0;
    char *save;
    for (char *line = strtok_r(dump, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        if (strncmp(line, "0x", 2) == 0)
            id = (int64_t)strtoull(line, NULL, 16);
        if (line[0] == '\t' && strcmp(line + 1, path) == 0)
            return id;
    }
    return 0;
}

/* Who has the session comes back at once, and may be faster: all is said in one breath. */
static void take_and_end(const struct zookeeper_server *z, int64_t id)
{
    CLEANUP(closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in sa = address(z->port);
    /* a frame of: version, zxid, time-out, session, password, read-only; a frame of: number, closeSession */
    uint8_t b[4 + 45 + 4 + 8] = { 0 }, *hello = b + 4, *bye = hello + 45 + 4, answer[256];

    put_be32(b, 45);
    put_be32(hello + 12, 10000);
    put_be64(hello + 16, (uint64_t)id);
    put_be32(hello + 24, 16);
    session_password(id, hello + 28);
    put_be32(bye - 4, 8);
    put_be32(bye, 1);
    put_be32(bye + 4, (uint32_t)-11);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    assert_int_equal(send(fd, b, sizeof b, MSG_NOSIGNAL), sizeof b);
    while (recv(fd, answer, sizeof answer, 0) > 0)
        ;
}

void zookeeper_server_end_session(const struct zookeeper_server *z, const char *path)
{
    int64_t id;
    assert_int_not_equal(session_of(z, path), 0);
    while ((id = session_of(z, path)) != 0)
        take_and_end(z, id);
}

void zookeeper_server_done(struct zookeeper_server *z)
{
    zookeeper_server_stop(z);
    fs_remove_tree(AT_FDCWD, z->dir);
}
