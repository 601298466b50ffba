/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klogd's command line, signals and exit status; everything else is struct broker's. The main thread parses,
 * starts the broker, waits for signals and stops it; all other threads have every signal blocked.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

#include "daemon/broker.h"
#include "daemon/import.h"
#include "daemon/server/server.h"
#include "daemon/watch/watch.h"
#include "lib/base/fsutil.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/service.h"
#include "lib/base/world.h"
#include "lib/loop/exec.h"
#include "lib/store/io.h"

const char *argp_program_version = "klogd " PACKAGE_VERSION;

enum { OPT_OVERRIDE = 256, OPT_PRINT_CONFIG, OPT_IMPORT, OPT_DAEMONIZE, OPT_LOG_FILE, OPT_PID_FILE };

enum {
    MEMORY_RESERVE_BYTES = 4 << 20, /* what a moment of shortage takes: see lib/base/mem.h */
    KEPT_DESCRIPTORS_MAX = 32,      /* for what the store opens only for a moment: see lib/store/io.h */
};

static const struct argp_option options[] = {
    { "config", 'c', "FILE", 0, "Read the configuration from FILE (key=value lines, Kafka's key names)", 0 },
    { "override", OPT_OVERRIDE, "KEY=VALUE", 0, "Set one key, over the file; may be given again", 0 },
    { "print-config", OPT_PRINT_CONFIG, NULL, 0, "Check the configuration, print all of it, and exit", 0 },
    { "import", OPT_IMPORT, NULL, 0,
      "Take the registers of a broker that was alone, and is stopped, to zookeeper.connect, and exit (klog cluster import)", 0 },
    { "daemonize", OPT_DAEMONIZE, NULL, 0,
      "Go to the background; return when clients are served. Messages still go to "
      "standard error, or to --log-file",
      0 },
    { "log-file", OPT_LOG_FILE, "FILE", 0, "Write messages to the end of FILE; SIGHUP opens it anew", 0 },
    { "pid-file", OPT_PID_FILE, "FILE", 0, "Write the process's number to FILE once clients are served", 0 },
    { "debug", 'd', NULL, 0, "Say what happens: log.level=debug, whatever the configuration has", 0 },
    { NULL, 'h', NULL, OPTION_HIDDEN, NULL, 0 },
    { 0 },
};

static const char doc[] =
    "klogd - a log broker that speaks Kafka's protocol\v"
    "Examples:\n"
    "  klogd --override log.dirs=/var/lib/klog\n"
    "  klogd /etc/klog/klogd.properties --override listeners=PLAINTEXT://:9092\n"
    "  klogd -c klogd.properties --print-config\n"
    "\n"
    "SIGTERM and SIGINT stop it clean (a second one at once, without flushing); SIGHUP reads log.level and "
    "opens the log file anew.\n"
    "Exit status: 0 stopped clean, 1 wrong command line or configuration, 2 could not start, 3 the last log "
    "directory failed, 4 stopped, but not clean: the next start checks the logs, 5 another process has this broker.id.";

struct arguments {
    struct broker_config config;
    const char *file;
    const char *log_file, *pid_file; /* NULL: none */
    bool print, import, daemonize, debug;
    const char **overrides;
    size_t n_overrides;
};

/* ---- configuration ---- */
static void die(enum broker_exit status, const char *text)
{
    service_complain("klogd", text);
    exit((int)status);
}

static void die_of_file(const char *what, const char *path, int rc)
{
    CLEANUP(freep) char *text = xasprintf("%s %s: %s", what, path, strerror(-rc));
    die(BROKER_EXIT_START, text);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (key) {
    case 'c':
    case ARGP_KEY_ARG:
        if (a->file != NULL)
            argp_error(state, "two configuration files: %s and %s", a->file, arg);
        a->file = arg;
        return 0;
    case OPT_OVERRIDE:
        a->overrides = xreallocarray(a->overrides, a->n_overrides + 1, sizeof(char *));
        a->overrides[a->n_overrides++] = arg;
        return 0;
    case OPT_PRINT_CONFIG:
        a->print = true;
        return 0;
    case OPT_IMPORT:
        a->import = true;
        return 0;
    case OPT_DAEMONIZE:
        a->daemonize = true;
        return 0;
    case OPT_LOG_FILE:
        a->log_file = arg;
        return 0;
    case OPT_PID_FILE:
        a->pid_file = arg;
        return 0;
    case 'd':
        a->debug = true;
        return 0;
    case 'h':
        argp_state_help(state, stdout, ARGP_HELP_STD_HELP); /* does not return */
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int apply_override(struct broker_config *c, const char *text, char *err, size_t err_size)
{
    const char *eq = strchr(text, '=');
    if (eq == NULL || eq == text) {
        snprintf(err, err_size, "--override %s: KEY=VALUE is expected", text);
        return -EINVAL;
    }
    CLEANUP(freep) char *name = xstrndup(text, (size_t)(eq - text));
    return broker_config_set(c, name, eq + 1, err, err_size);
}

static int read_config(const struct arguments *a, struct broker_config *c, char *err, size_t err_size)
{
    broker_config_init(c);
    int rc = a->file == NULL ? 0 : broker_config_read_file(c, a->file, err, err_size);
    for (size_t i = 0; rc == 0 && i < a->n_overrides; i++)
        rc = apply_override(c, a->overrides[i], err, err_size);
    return rc < 0 ? rc : broker_config_check(c, err, err_size);
}

static void print_config(const struct broker_config *c)
{
    for (size_t i = 0; i < broker_config_table.n; i++) {
        char value[4096];
        conf_get(&broker_config_table.keys[i], c, value, sizeof value);
        printf("%s=%s\n", broker_config_table.keys[i].name, value);
    }
}

/* ---- the process ---- */
/* Segments and connections need many descriptors; what the administrator allows at most is what we take. */
static void raise_descriptor_limit(void)
{
    struct rlimit lim;
    if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur == lim.rlim_max)
        return;
    lim.rlim_cur = lim.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &lim) < 0)
        log_warn("cannot raise the limit of open files: %s", strerror(errno));
}

static void keep_descriptors(const struct machine *m)
{
    io_keep_descriptors((int)MIN((int64_t)KEPT_DESCRIPTORS_MAX, m->fd_limit(m) / 8));
}

static sigset_t block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGUSR1, SIG_IGN); /* mean nothing, and must not end it without a clean stop */
    signal(SIGUSR2, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* write() says EFBIG */
    return set;
}

/* The parent waits for the child's word and leaves with its verdict; the child gets the descriptor to say it
 * on. */
static int go_to_background(void)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        die(BROKER_EXIT_START, strerror(errno));
    pid_t child = fork();
    if (child < 0)
        die(BROKER_EXIT_START, strerror(errno));
    if (child > 0) {
        char word;
        int status = 0;
        close(fds[1]);
        if (read(fds[0], &word, 1) == 1)
            _exit(BROKER_EXIT_CLEAN);
        waitpid(child, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : BROKER_EXIT_START);
    }
    close(fds[0]);
    setsid();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        close(null);
    }
    return fds[1];
}

static void notify(const char *what)
{
#ifdef HAVE_SYSTEMD
    sd_notify(0, what);
#else
    (void)what;
#endif
}

static void say_ready(const struct broker *b, int ready_fd, int64_t began_ms)
{
    struct bytebuf addresses = { 0 };
    server_addresses(b->server, &addresses);
    log_info("%s serves %s", PACKAGE_STRING, bytebuf_cstr(&addresses));
    if (b->watch != NULL)
        log_info("metrics and status at http://%s/", watch_address(b->watch));
    log_info("data in %s, cluster %s, broker %d, started in %lld ms", b->config.log_dirs, b->cluster_id,
             b->id, (long long)(world_mono_ms(b->world) - began_ms));
    bytebuf_done(&addresses);
    notify("READY=1");
    if (ready_fd >= 0) {
        if (write(ready_fd, "1", 1) < 0)
            log_debug("whoever started klogd is gone");
        close(ready_fd);
    }
}

/* ---- signals ---- */
static void on_second_signal(int sig)
{
    (void)sig;
    static const char text[] = "klogd: second signal, stopping at once; the next start checks the logs\n";
    ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);
    (void)n;
    _exit(BROKER_EXIT_UNCLEAN);
}

static void set_log_level(const struct arguments *a, const struct broker_config *c)
{
    log_set_level(a->debug ? LOG_LEVEL_DEBUG : (enum log_level)c->log_level);
}

static void reread_log_settings(const struct arguments *a)
{
    struct broker_config c;
    char err[512] = "";
    int rc = service_log_reopen();
    if (rc < 0)
        log_error("SIGHUP: log file %s: %s; messages go on to the old one", a->log_file, strerror(-rc));
    if (read_config(a, &c, err, sizeof err) == 0) {
        set_log_level(a, &c);
        log_info("SIGHUP: log.level was read anew");
    } else {
        log_warn("SIGHUP: %s; nothing changed", err);
    }
    broker_config_done(&c);
}

static void wait_for_stop(const sigset_t *set, const struct arguments *a)
{
    for (;;) {
        int sig = 0;
        if (sigwait(set, &sig) != 0)
            continue;
        if (sig == SIGHUP) {
            reread_log_settings(a);
            continue;
        }
        log_info("%s: stopping", strsignal(sig));
        break;
    }
    signal(SIGHUP, SIG_IGN); /* from here on it must not end the stop */
    struct sigaction act = { .sa_handler = on_second_signal };
    sigaction(SIGTERM, &act, NULL);
    sigaction(SIGINT, &act, NULL);
    pthread_sigmask(SIG_UNBLOCK, set, NULL);
}

/* Signals are blocked until wait_for_stop() takes them. */
static bool stop_is_asked(void)
{
    sigset_t set;
    return sigpending(&set) == 0 && (sigismember(&set, SIGTERM) == 1 || sigismember(&set, SIGINT) == 1);
}

static void ask_stop(void)
{
    kill(getpid(), SIGTERM);
}

static int exit_status(const struct broker *b, bool clean)
{
    return b->has_twin ? BROKER_EXIT_TWIN : clean ? BROKER_EXIT_CLEAN : BROKER_EXIT_UNCLEAN;
}

static int serve(struct broker *b, const struct arguments *a, int ready_fd)
{
    char err[1024] = "";
    int64_t began_ms = world_mono_ms(b->world);
    sigset_t set = block_signals();
    raise_descriptor_limit();
    keep_descriptors(b->world->machine);
    b->stop_asked = stop_is_asked;
    b->stop = ask_stop;
    int rc = broker_start(b, err, sizeof err);
    if (rc < 0)
        die(rc == -EINTR ? BROKER_EXIT_CLEAN : b->has_twin ? BROKER_EXIT_TWIN : BROKER_EXIT_START, err);
    rc = a->pid_file == NULL ? 0 : service_pid_write(a->pid_file);
    if (rc < 0) {
        broker_stop(b);
        die_of_file("pid file", a->pid_file, rc);
    }
    say_ready(b, ready_fd, began_ms);
    service_settled();
    wait_for_stop(&set, a);
    notify("STOPPING=1");
    bool clean = broker_stop(b);
    if (a->pid_file != NULL)
        service_pid_remove(a->pid_file);
    log_info(clean ? "stopped clean" : "stopped, but not clean: the next start checks the logs");
    return exit_status(b, clean);
}

static int import(struct broker *b, char *err, size_t err_size)
{
    size_t n = 0;
    if (broker_import(&b->config, b->world, &n, err, err_size) < 0)
        die(BROKER_EXIT_START, err);
    printf("%zu registers are at %s now; start klogd with this zookeeper.connect from here on\n", n,
           b->config.zookeeper_connect);
    return BROKER_EXIT_CLEAN;
}

int main(int argc, char **argv)
{
    static const struct argp argp = { options, parse_option, "[FILE]", doc, NULL, NULL, NULL };
    struct arguments a = { 0 };
    struct world world;
    struct broker b = { .world = &world };
    char err[1024] = "";

    fs_hold_std_fds();
    world_init_real(&world);
    world.io = &store_io_real;
    argp_err_exit_status = BROKER_EXIT_USAGE;
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    if (read_config(&a, &b.config, err, sizeof err) < 0)
        die(BROKER_EXIT_USAGE, err);
    set_log_level(&a, &b.config);
    service_log_to_journal();
    if (a.print) {
        print_config(&b.config);
        broker_config_done(&b.config);
        free(a.overrides);
        return BROKER_EXIT_CLEAN;
    }
    int status;
    if (a.import) {
        status = import(&b, err, sizeof err);
    } else {
        mem_keep_reserve(MEMORY_RESERVE_BYTES);
        int ready_fd = a.daemonize ? go_to_background() : -1;
        int rc = a.log_file == NULL ? 0 : service_log_to(a.log_file);
        if (rc < 0)
            die_of_file("log file", a.log_file, rc);
        status = serve(&b, &a, ready_fd);
    }
    broker_config_done(&b.config);
    free(a.overrides);
    return status;
}
