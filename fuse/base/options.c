/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klogfs HOST:PORT[,HOST:PORT...] MOUNTPOINT [-o ...] [-f] [-d], and the same under the name mount.klogfs as
 * mount(8) calls it. The -o options are a configuration table, so an unknown one is refused with the nearest
 * name.
 */
#include "fuse/base/options.h"

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/conf.h"
#include "lib/base/mem.h"
#include "lib/metrics/http.h"

#define FIELD(name)  offsetof(struct options, name)
#define DEFAULT_PORT "9092"
#define DEFAULT_UMASK 022 /* as in the table */

static const char *const acks_choices[] = { "all", "1", "0", NULL };
static const int16_t acks_values[] = { -1, 1, 0 };
static const char *const codec_choices[] = { "none", "gzip", "snappy", "lz4", "zstd", NULL };

static const struct conf_key keys[] = {
    { "ro", CONF_BOOL, "false", 0, 0, NULL, FIELD(ro), "no appends, no changes", false },
    { "allow_other", CONF_BOOL, "false", 0, 0, NULL, FIELD(allow_other),
      "other users may use the mount, as the file modes allow", false },
    { "uid", CONF_STRING, "-1", 0, 0, NULL, FIELD(uid_text), "owner of everything, name or number; -1: who mounts",
      false },
    { "gid", CONF_STRING, "-1", 0, 0, NULL, FIELD(gid_text),
      "group of everything, name or number; -1: of who mounts", false },
    { "umask", CONF_STRING, "022", 0, 0, NULL, FIELD(umask_text), "mode bits to take away, octal", false },
    { "async", CONF_BOOL, "false", 0, 0, NULL, FIELD(async),
      "write() does not wait for the broker; errors show at the next write, close or fsync", false },
    { "acks", CONF_ENUM, "all", 0, 0, acks_choices, FIELD(acks), "who must have a record: all, 1, 0", false },
    { "compression", CONF_ENUM, "none", 0, 0, codec_choices, FIELD(compression), "of appended batches",
      false },
    { "timeout", CONF_DOUBLE, "10", 0.1, 86400, NULL, FIELD(timeout_s), "seconds any operation may take",
      false },
    { "session", CONF_DOUBLE, "45", 1, 86400, NULL, FIELD(session_s),
      "as/G/all: seconds until a mount that is not heard of loses its partitions", false },
    { "linger", CONF_INT, "5", 0, 60000, NULL, FIELD(linger_ms), "async: ms a batch waits for more", false },
    { "batch.size", CONF_INT, "1048576", 1024, 16777216, NULL, FIELD(batch_size_bytes),
      "async: bytes a batch", false },
    { "delete", CONF_BOOL, "false", 0, 0, NULL, FIELD(delete_topics), "rmdir of a topic deletes it", false },
    { "http.listener", CONF_STRING, "", 0, 0, NULL, FIELD(http_listener),
      "HOST:PORT where /metrics, /healthz and /readyz are served by HTTP; none: nowhere", false },
};
static const struct conf_table table = { keys, ARRAY_LEN(keys), "mount" };

/* What the kernel judges itself, and what only mount(8), fstab and systemd read. */
static const char *const kernel_words[] = { "nosuid", "suid", "nodev",   "dev",
                                            "noexec", "exec", "noatime", "atime" };
static const char *const ignored_words[] = { "rw",     "defaults", "auto",       "noauto",
                                             "nofail", "_netdev",  "user",       "nouser",
                                             "users",  "relatime", "norelatime", "nodiratime" };

static bool word_in(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(word, list[i]) == 0)
            return true;
    }
    return false;
}

static int options_set_word(struct options *o, char *word, char *err, size_t err_size)
{
    if (*word == '\0' || word_in(word, ignored_words, ARRAY_LEN(ignored_words)) ||
        strncmp(word, "x-", 2) == 0 || strncmp(word, "comment=", 8) == 0)
        return 0;
    if (word_in(word, kernel_words, ARRAY_LEN(kernel_words))) {
        bytebuf_printf(&o->kernel_options, ",%s", word);
        return 0;
    }
    if (strcmp(word, "sync") == 0) {
        o->async = false;
        return 0;
    }
    char *value = strchr(word, '=');
    if (value != NULL)
        *value++ = '\0';
    const struct conf_key *k = conf_find(&table, word);
    if (value == NULL && k != NULL && k->type != CONF_BOOL) {
        snprintf(err, err_size, "option \"%s\" needs a value: %s=...", word, word);
        return -EINVAL;
    }
    return conf_set(&table, o, word, value == NULL ? "true" : value, err, err_size);
}

static int options_set_list(struct options *o, const char *list, char *err, size_t err_size)
{
    CLEANUP(freep) char *copy = xstrdup(list);
    char *rest = copy, *word;
    int rc = 0;
    while (rc == 0 && (word = strsep(&rest, ",")) != NULL)
        rc = options_set_word(o, word, err, err_size);
    return rc;
}

/* A number as it stands, -1 as `mine`; false: it is a name. UINT32_MAX is no user's and no group's number. */
static bool id_from_number(const char *text, uint32_t mine, uint32_t *ret)
{
    char *end;
    if (strcmp(text, "-1") == 0) {
        *ret = mine;
        return true;
    }
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    *ret = (uint32_t)n;
    return *end == '\0' && errno == 0 && n < UINT32_MAX;
}

static int options_set_owner(struct options *o, char *err, size_t err_size)
{
    if (!id_from_number(o->uid_text, getuid(), &o->uid)) {
        const struct passwd *user = getpwnam(o->uid_text);
        if (user == NULL) {
            snprintf(err, err_size, "uid=%s: there is no such user", o->uid_text);
            return -EINVAL;
        }
        o->uid = user->pw_uid;
    }
    if (!id_from_number(o->gid_text, getgid(), &o->gid)) {
        const struct group *group = getgrnam(o->gid_text);
        if (group == NULL) {
            snprintf(err, err_size, "gid=%s: there is no such group; groupadd --system %s makes it", o->gid_text,
                     o->gid_text);
            return -EINVAL;
        }
        o->gid = group->gr_gid;
    }
    return 0;
}

static int options_work_out(struct options *o, char *err, size_t err_size)
{
    char *end;
    o->umask = (unsigned)strtoul(o->umask_text, &end, 8);
    if (*end != '\0' || end == o->umask_text || o->umask > 0777) {
        snprintf(err, err_size, "umask=%s is not an octal mode", o->umask_text);
        return -EINVAL;
    }
    if (o->http_listener[0] != '\0' && !http_address_ok(o->http_listener, "http.listener", err, err_size))
        return -EINVAL;
    int rc = options_set_owner(o, err, err_size);
    if (rc != 0)
        return rc;
    /* Who mounts is the only one to come in then, and owns what he finds: there is nothing for the kernel to judge. */
    o->modes_matter = o->allow_other || o->uid != getuid() || o->gid != getgid() || o->umask != DEFAULT_UMASK;
    o->timeout_ms = (int64_t)(o->timeout_s * 1000);
    o->session_timeout_ms = (int32_t)(o->session_s * 1000);
    o->required_acks = acks_values[o->acks];
    return 0;
}

/* "host" means the default port; mount(8) may have put "klogfs#" in front (fstab's old form for FUSE). */
static char *brokers_with_ports(const char *text)
{
    struct bytebuf b = { 0 };
    CLEANUP(freep) char *copy = xstrdup(text);
    char *rest = copy, *host;
    while ((host = strsep(&rest, ",")) != NULL) {
        if (*host == '\0')
            continue;
        const char *after_v6 = strchr(host, ']');
        bool has_port = strchr(after_v6 != NULL ? after_v6 : host, ':') != NULL;
        bytebuf_printf(&b, "%s%s%s", b.n > 0 ? "," : "", host, has_port ? "" : ":" DEFAULT_PORT);
    }
    char *ret = xstrdup(bytebuf_cstr(&b));
    bytebuf_done(&b);
    return ret;
}

/* Absolute, without links; NULL and errno. The last part may be a dead mount, which answers nothing but
 * ENOTCONN. */
static char *mountpoint_resolve(const char *path)
{
    char real[PATH_MAX];
    if (realpath(path, real) != NULL)
        return xstrdup(real);
    if (errno != ENOTCONN)
        return NULL;
    CLEANUP(freep) char *parent = xstrdup(path);
    CLEANUP(freep) char *name = xstrdup(path);
    if (realpath(dirname(parent), real) == NULL)
        return NULL;
    return xasprintf("%s/%s", strcmp(real, "/") == 0 ? "" : real, basename(name));
}

static int options_set_places(struct options *o, int n, char **words, char *err, size_t err_size)
{
    if (n != 2) {
        snprintf(err, err_size,
                 "%s; usage: klogfs HOST:PORT[,HOST:PORT...] MOUNTPOINT [-o OPTIONS] [-f] [-d]",
                 n < 2 ? "the brokers and the mount point are needed" : "too many arguments");
        return -EINVAL;
    }
    o->brokers = brokers_with_ports(words[0]);
    if (o->brokers[0] == '\0') {
        snprintf(err, err_size, "\"%s\" names no broker; give HOST:PORT", words[0]);
        return -EINVAL;
    }
    o->mountpoint = mountpoint_resolve(words[1]);
    if (o->mountpoint == NULL) {
        snprintf(err, err_size, "mount point %s: %s", words[1], strerror(errno));
        return -EINVAL;
    }
    return 0;
}

enum { OPT_LOG_FILE = 256, OPT_PID_FILE };

/* Absolute: klogfs leaves the directory that it was started in. */
static void path_set(char **ret, const char *path)
{
    char here[PATH_MAX];
    free(*ret);
    if (*path == '/' || getcwd(here, sizeof here) == NULL)
        *ret = xstrdup(path);
    else
        *ret = xasprintf("%s/%s", here, path);
}

enum options_result options_parse(int argc, char **argv, struct options *ret, char *err, size_t err_size)
{
    static const struct option longs[] = { { "help", no_argument, NULL, 'h' },
                                           { "version", no_argument, NULL, 'V' },
                                           { "foreground", no_argument, NULL, 'F' },
                                           { "debug", no_argument, NULL, 'd' },
                                           { "log-file", required_argument, NULL, OPT_LOG_FILE },
                                           { "pid-file", required_argument, NULL, OPT_PID_FILE },
                                           { NULL, 0, NULL, 0 } };
    const char *base = strrchr(argv[0], '/');
    bool helper = strcmp(base == NULL ? argv[0] : base + 1, "mount.klogfs") == 0;
    memset(ret, 0, sizeof *ret);
    conf_defaults(&table, ret);
    opterr = 0;
    int c, rc = 0;
    while (rc == 0 && (c = getopt_long(argc, argv, helper ? "o:fnsvh" : "o:fdhV", longs, NULL)) != -1) {
        if (c == 'o')
            rc = options_set_list(ret, optarg, err, err_size);
        else if (c == 'f')
            *(helper ? &ret->fake : &ret->foreground) = true;
        else if (c == 'F')
            ret->foreground = true;
        else if (c == 'd')
            ret->debug = true;
        else if (c == OPT_LOG_FILE)
            path_set(&ret->log_file, optarg);
        else if (c == OPT_PID_FILE)
            path_set(&ret->pid_file, optarg);
        else if (c == 'h')
            return OPTIONS_HELP;
        else if (c == 'V')
            return OPTIONS_VERSION;
        else if (c == '?') {
            snprintf(err, err_size, "unknown or incomplete argument %s; see klogfs --help", argv[optind - 1]);
            rc = -EINVAL;
        }
    }
    if (rc == 0)
        rc = options_set_places(ret, argc - optind, argv + optind, err, err_size);
    if (rc == 0)
        rc = options_work_out(ret, err, err_size);
    return rc == 0 ? OPTIONS_OK : OPTIONS_BAD;
}

void options_done(struct options *o)
{
    free(o->brokers);
    free(o->mountpoint);
    free(o->log_file);
    free(o->pid_file);
    bytebuf_done(&o->kernel_options);
    conf_done(&table, o);
}

void options_usage(void)
{
    printf(
        "Usage: klogfs HOST:PORT[,HOST:PORT...] MOUNTPOINT [-o OPTION[,OPTION...]] [-f] [-d]\n"
        "   or: mount -t klogfs HOST:PORT[,...] MOUNTPOINT [-o ...]\n"
        "Shows a klog cluster as directories: a topic is a directory, a partition a file, a record a "
        "line.\n\n"
        "  -f, --foreground      stay in the foreground\n"
        "  -d, --debug           the same, and say what happens\n"
        "      --log-file FILE   write messages to the end of FILE; SIGHUP opens it anew\n"
        "      --pid-file FILE   write the process's number to FILE once it is mounted\n"
        "  -V, --version         print the version\n"
        "  -h, --help            print this help\n\n"
        "Options, with their defaults:\n"
        "  sync                 write() returns when the record is committed (default; the other is async)\n");
    for (size_t i = 0; i < table.n; i++)
        printf("  %-13s %-8s %s\n", keys[i].name, keys[i].def, keys[i].doc);
    printf("\nExit status: 0 mounted (-f: ended clean), 1 not mounted; standard error says why.\n"
           "\nExample:\n  klogfs 127.0.0.1:9092 /mnt/klog -o allow_other\n  mkdir /mnt/klog/orders\n"
           "  echo hello >> /mnt/klog/orders/p0; tail -f /mnt/klog/orders/p0\n  umount /mnt/klog\n");
}
