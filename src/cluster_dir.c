/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of a cluster on this machine, and the settings in it; see cluster.h. What is read is what klogd and ZooKeeper
 * read, so that settings which a user has changed count here, too. One thread.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/conf.h"
#include "lib/base/fsutil.h"
#include "lib/base/hostport.h"
#include "lib/base/mem.h"
#include "src/cluster.h"

enum {
    BROKERS_DEFAULT = 3,
    REPLICAS_MAX = 3,
    TIMEOUT_S_DEFAULT = 60,
    TIMEOUT_S_MAX = 3600,
};

/* ---- names ---- */
static char *default_dir(void)
{
    const char *home = getenv("HOME");

    if (geteuid() == 0 || home == NULL || home[0] != '/')
        return xstrdup("/var/lib/klog-cluster");
    return xasprintf("%s/.local/share/klog/cluster", home);
}

/* Absolute, since command lines have it; without a '/' at the end, or it would be another name. */
static char *absolute(const char *dir)
{
    char cwd[4096];

    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        n--;
    if (dir[0] == '/')
        return xstrndup(dir, n);
    if (getcwd(cwd, sizeof cwd) == NULL)
        return NULL;
    return xasprintf("%s/%.*s", cwd, (int)n, dir);
}

/* ---- reading ---- */
static int take_broker_setting(void *arg, const char *name, const char *value, char *err, size_t err_size)
{
    struct cluster_broker *b = arg;
    struct hostport hp;
    const char *at = strstr(value, "://");

    (void)err;
    (void)err_size;
    if (strcmp(name, "broker.rack") == 0) {
        free(b->rack);
        b->rack = value[0] != '\0' ? xstrdup(value) : NULL;
    } else if (strcmp(name, "listeners") == 0 && at != NULL) {
        size_t n = strcspn(at + 3, ", ");
        if (hostport_parse(at + 3, n, &hp) && hp.port > 0) {
            free(b->address);
            b->port = hp.port;
            b->address = hp.host.n > 0 ? xstrndup(at + 3, n) : xasprintf("127.0.0.1:%d", (int)hp.port);
        }
    }
    return 0;
}

static void broker_name(const struct cluster *c, struct cluster_broker *b, int32_t id)
{
    *b = (struct cluster_broker){ .id = id, .home = xasprintf("%s/broker-%d", c->dir, (int)id) };
    b->conf = xasprintf("%s/klogd.properties", b->home);
    b->log = xasprintf("%s/klogd.log", b->home);
}

static void broker_done(struct cluster_broker *b)
{
    free(b->address);
    free(b->rack);
    free(b->home);
    free(b->conf);
    free(b->log);
}

static int broker_read(const struct cluster *c, struct cluster_broker *b)
{
    char err[512];

    if (conf_read_lines(b->conf, take_broker_setting, b, err, sizeof err) < 0) {
        complain(c->args, "%s", err);
        return CLI_FAILED;
    }
    if (b->port == 0) {
        complain(c->args, "%s: listeners has no HOST:PORT", b->conf);
        return CLI_FAILED;
    }
    return CLI_OK;
}

static int take_zookeeper_setting(void *arg, const char *name, const char *value, char *err, size_t err_size)
{
    struct cluster *c = arg;
    int64_t port;

    (void)err;
    (void)err_size;
    if (strcmp(name, "clientPort") == 0 && args_int(value, 1, 65535, &port))
        c->zookeeper_port = (int32_t)port;
    return 0;
}

static int zookeeper_read(struct cluster *c)
{
    char err[512];

    if (access(c->zookeeper_conf, F_OK) < 0)
        return CLI_OK;
    if (conf_read_lines(c->zookeeper_conf, take_zookeeper_setting, c, err, sizeof err) < 0) {
        complain(c->args, "%s", err);
        return CLI_FAILED;
    }
    if (c->zookeeper_port == 0) {
        complain(c->args, "%s: there is no clientPort", c->zookeeper_conf);
        return CLI_FAILED;
    }
    return CLI_OK;
}

static struct cluster_broker *broker_add(struct cluster *c, int32_t id)
{
    c->brokers = xreallocarray(c->brokers, c->n_brokers + 1, sizeof *c->brokers);
    broker_name(c, &c->brokers[c->n_brokers], id);
    return &c->brokers[c->n_brokers++];
}

static int brokers_read(struct cluster *c)
{
    for (int32_t id = 1; id <= CLUSTER_BROKERS_MAX; id++) {
        CLEANUP(freep) char *conf = xasprintf("%s/broker-%d/klogd.properties", c->dir, (int)id);
        if (access(conf, F_OK) == 0 && broker_read(c, broker_add(c, id)) != CLI_OK)
            return CLI_FAILED;
    }
    return CLI_OK;
}

int cluster_read(struct cluster *c, const struct args *a)
{
    CLEANUP(freep) char *otherwise = default_dir();
    int64_t timeout_s;

    *c = (struct cluster){ .args = a };
    int rc = args_get_int(a, "timeout", 1, TIMEOUT_S_MAX, TIMEOUT_S_DEFAULT, &timeout_s);
    if (rc != CLI_OK)
        return rc;
    c->timeout_ms = timeout_s * 1000;
    const char *dir = args_get(a, "dir", otherwise);
    if (dir[0] == '\0' || strpbrk(dir, "\n,") != NULL)
        return complain_usage(a, "'%s' can be no directory of a cluster", dir);
    c->dir = absolute(dir);
    if (c->dir == NULL) {
        complain(a, "the current directory: %s", strerror(errno));
        return CLI_FAILED;
    }
    c->zookeeper = xasprintf("%s/zookeeper", c->dir);
    c->zookeeper_conf = xasprintf("%s/zoo.cfg", c->zookeeper);
    c->zookeeper_log = xasprintf("%s/zookeeper.log", c->zookeeper);
    rc = zookeeper_read(c);
    return rc != CLI_OK ? rc : brokers_read(c);
}

int cluster_read_made(struct cluster *c, const struct args *a)
{
    int rc = cluster_read(c, a);

    if (rc == CLI_OK && c->n_brokers == 0) {
        complain(a, "there is no cluster in %s (--dir names another; klog cluster start makes one)", c->dir);
        rc = CLI_FAILED;
    }
    return rc;
}

void cluster_done(struct cluster *c)
{
    for (size_t i = 0; i < c->n_brokers; i++)
        broker_done(&c->brokers[i]);
    free(c->brokers);
    free(c->dir);
    free(c->zookeeper);
    free(c->zookeeper_conf);
    free(c->zookeeper_log);
    *c = (struct cluster){ 0 };
}

/* ---- making ---- */
static int make_dir(const struct cluster *c, const char *dir)
{
    CLEANUP(freep) char *path = xstrdup(dir);

    for (char *p = path + 1;; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        char was = *p;
        *p = '\0';
        if (mkdir(path, 0755) < 0 && errno != EEXIST) {
            complain(c->args, "%s: %s", path, strerror(errno));
            return CLI_FAILED;
        }
        *p = was;
        if (was == '\0')
            return CLI_OK;
    }
}

/* Whole or not at all: half a file of settings would be taken for the user's. */
static int make_file(const struct cluster *c, const char *path, struct bytebuf *text)
{
    CLEANUP(freep) char *tmp = xasprintf("%s.tmp", path);
    CLEANUP(closep) int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int rc = fd < 0 ? -errno : fs_write_all(fd, text->p, text->n);

    if (rc == 0 && (fsync(fd) < 0 || rename(tmp, path) < 0))
        rc = -errno;
    if (rc < 0)
        complain(c->args, "%s: %s", path, strerror(-rc));
    return rc < 0 ? CLI_FAILED : CLI_OK;
}

static int zookeeper_make(struct cluster *c, int64_t port)
{
    CLEANUP(bytebuf_done) struct bytebuf text = { 0 };

    if (c->zookeeper_port != 0)
        return CLI_OK;
    if (make_dir(c, c->zookeeper) != CLI_OK)
        return CLI_FAILED;
    bytebuf_printf(&text,
                   "# The ZooKeeper of the cluster in %s. Made by klog cluster start, which does not change it again.\n"
                   "tickTime=200\nminSessionTimeout=400\nmaxSessionTimeout=60000\n"
                   "dataDir=%s/data\nclientPort=%d\nclientPortAddress=127.0.0.1\n"
                   "admin.enableServer=false\n4lw.commands.whitelist=srvr\nmaxClientCnxns=0\n"
                   "autopurge.snapRetainCount=3\nautopurge.purgeInterval=24\n",
                   c->dir, c->zookeeper, (int)port);
    c->zookeeper_port = (int32_t)port;
    return make_file(c, c->zookeeper_conf, &text);
}

/* The i-th of "A,B,C", beginning anew at its end. */
static char *rack_of(const char *racks, int32_t i)
{
    int32_t n = 1;

    if (racks == NULL)
        return NULL;
    for (const char *p = racks; *p != '\0'; p++)
        n += *p == ',';
    for (i %= n; i > 0; i--)
        racks = strchr(racks, ',') + 1;
    return xstrndup(racks, strcspn(racks, ","));
}

static int broker_make(struct cluster *c, int32_t id, const struct cluster_wanted *w, int32_t n)
{
    CLEANUP(bytebuf_done) struct bytebuf text = { 0 };
    CLEANUP(freep) char *rack = rack_of(w->racks, id - 1);
    struct cluster_broker b;
    int replicas = n < REPLICAS_MAX ? (int)n : REPLICAS_MAX;

    broker_name(c, &b, id);
    bytebuf_printf(&text,
                   "# Broker %d of the cluster in %s; see klogd.properties(5). Made by klog cluster start, which does not change it again.\n"
                   "broker.id=%d\nlisteners=PLAINTEXT://127.0.0.1:%d\nlog.dirs=%s/data\n"
                   "zookeeper.connect=127.0.0.1:%d\nzookeeper.session.timeout.ms=2000\n"
                   "default.replication.factor=%d\noffsets.topic.replication.factor=%d\nmin.insync.replicas=%d\n",
                   (int)id, c->dir, (int)id, (int)(w->port + id - 1), b.home, (int)c->zookeeper_port, replicas, replicas,
                   replicas > 1 ? replicas - 1 : 1);
    if (rack != NULL && rack[0] != '\0')
        bytebuf_printf(&text, "broker.rack=%s\n", rack);
    int rc = make_dir(c, b.home);
    if (rc == CLI_OK)
        rc = make_file(c, b.conf, &text);
    broker_done(&b);
    return rc == CLI_OK ? broker_read(c, broker_add(c, id)) : rc;
}

static bool has_broker(const struct cluster *c, int32_t id)
{
    for (size_t i = 0; i < c->n_brokers; i++) {
        if (c->brokers[i].id == id)
            return true;
    }
    return false;
}

int cluster_make(struct cluster *c, const struct cluster_wanted *w)
{
    int32_t n = w->n_brokers > 0 ? (int32_t)w->n_brokers : c->n_brokers > 0 ? 0 : BROKERS_DEFAULT;

    if (w->port + n - 1 > 65535) {
        complain(c->args, "%d brokers from port %d on: there are no ports above 65535", (int)n, (int)w->port);
        return CLI_FAILED;
    }
    int rc = zookeeper_make(c, w->zookeeper_port);
    for (int32_t id = 1; rc == CLI_OK && id <= n; id++) {
        if (!has_broker(c, id))
            rc = broker_make(c, id, w, n);
    }
    return rc;
}

const struct cluster_broker *cluster_broker_of(const struct cluster *c, int64_t id)
{
    for (size_t i = 0; i < c->n_brokers; i++) {
        if (c->brokers[i].id == id)
            return &c->brokers[i];
    }
    complain(c->args, "the cluster in %s has no broker %d", c->dir, (int)id);
    return NULL;
}
