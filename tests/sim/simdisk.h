/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that is not there: directories and files in memory behind a struct store_io, with what a real one may do to
 * them. It knows for each 512 bytes what programs see (the page cache) and what would survive a power cut, for each name the
 * same, and may make any of it durable at any time, as kernels do.
 *
 *   - A cut may come at any call (simdisk_stop_in), in the middle of a write; from there on nothing happens any more and
 *     everything is -EIO, until simdisk_kill() (the cache stays) or simdisk_power_cut() begin a new life.
 *   - Space and descriptors are counted: -ENOSPC after short writes, -EMFILE.
 *   - A failing fsync is told once: pages are clean then, the cache has the new bytes and the disk the old ones.
 *   - Directories are listed in a drawn order.
 *
 * Every choice is a number of a counter-based stream (rand.h) of the disk's own, one for each purpose: same seed and same
 * calls, same disk. Any thread, one mutex; the hooks are called without it.
 *
 * What it does not have: links, permissions, files larger than memory, garbage in torn sectors.
 */
#ifndef KLOG_SIM_SIMDISK_H
#define KLOG_SIM_SIMDISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/store/io.h"

#define SIMDISK_SECTOR 512
#define SIMDISK_PAGE   4096
#define SIMDISK_FD_MIN (1 << 20) /* a stray system call gets EBADF */

/* Classes of calls, for counts, faults and latencies. */
enum simdisk_op {
    SIMDISK_OPEN,   /* of what is there; list */
    SIMDISK_LOOK,   /* fstat, statat, seek_data, space, trylock */
    SIMDISK_READ,
    SIMDISK_CLOSE,
    SIMDISK_CREATE, /* from here on: calls that change something. A file or a directory */
    SIMDISK_WRITE,
    SIMDISK_SYNC,
    SIMDISK_TRUNCATE,
    SIMDISK_RENAME,
    SIMDISK_UNLINK,
    SIMDISK_ALLOCATE,
    SIMDISK_OPS
};

struct simdisk;

/* Called outside of the disk's lock, once a call is over: `took` may give way to others, and neither need return. */
struct simdisk_hooks {
    void *arg;
    int64_t (*wall_ns)(void *arg); /* what files get as their time; NULL: it counts calls. Called under the lock */
    void (*took)(void *arg, enum simdisk_op op, int64_t ns);
    void (*stopped)(void *arg); /* this was the call at which everything ends */
    /* Before those two, for who judges what is done; may be NULL. A write changed bytes that were there, or left a hole. */
    void (*rewrote)(void *arg, const char *path, int64_t at);
    /* The file has a new name; unsynced: so have bytes of it that a power cut may take. */
    void (*renamed)(void *arg, const char *from, const char *to, bool unsynced);
    void (*shrunk)(void *arg, const char *path, bool is_gone); /* by ftruncate, or its name is gone */
};

struct simdisk_config {
    uint64_t seed;
    uint64_t which;   /* of several disks of a seed */
    int64_t capacity; /* bytes; 0: without end */
    int fd_limit;     /* 0: none */
    bool journal;     /* an fsync makes every change of names before it durable, as ext4 does; else the directory's only */
    struct simdisk_hooks hooks;
};

struct simdisk *simdisk_new(const struct simdisk_config *cfg);
void simdisk_free(struct simdisk *d);
/* The table; as long as the disk lives. Paths are absolute, or relative to "/" or a directory's descriptor. */
const struct store_io *simdisk_io(struct simdisk *d);
void simdisk_set_hooks(struct simdisk *d, const struct simdisk_hooks *hooks);

/* ---- ends of a life ---- */
/* At the n-th call from now on that changes something (0: the next one) everything ends; a write then does a drawn part of
 * its work, another call all of it or nothing. -1: not any more. */
void simdisk_stop_in(struct simdisk *d, int64_t n);
void simdisk_stop(struct simdisk *d); /* now */
bool simdisk_stopped(const struct simdisk *d);
/* As after kill -9: descriptors and locks are gone, nothing else. */
void simdisk_kill(struct simdisk *d);
enum simdisk_cut {
    SIMDISK_CUT_NONE,     /* nothing that was not synced is there */
    SIMDISK_CUT_ALL,      /* all of it is */
    SIMDISK_CUT_IN_ORDER, /* what was done up to some call, which may be torn, and nothing after it */
    SIMDISK_CUT_FILES,    /* of each file all or nothing */
    SIMDISK_CUT_PAGES,    /* each page is the old or the new one */
    SIMDISK_CUT_SECTORS,
    SIMDISK_CUTS
};
/* In all but the first three, changes of names are an ordered prefix, or any subset that could be. */
void simdisk_power_cut(struct simdisk *d, enum simdisk_cut how);
/* How: drawn. */
enum simdisk_cut simdisk_power_cut_any(struct simdisk *d);

/* ---- faults ---- */
struct simdisk_fault {
    unsigned ops;      /* 1u << enum simdisk_op: of these calls ... */
    const char *under; /* ... on paths that begin so (NULL: all; must last) ... */
    int64_t at, n;     /* ... number `at`, from when the plan is set, and the n - 1 after it */
    int eno;           /* answer that. Of a write a drawn part is done first when `part` says so; a sync loses pages */
    bool part;
};
/* Takes the place of the plan before; copied. */
void simdisk_plan(struct simdisk *d, const struct simdisk_fault *faults, int n);
bool simdisk_plan_was_hit(const struct simdisk *d); /* any of it */

/* Chances in a million. Zero from the beginning. */
struct simdisk_chances {
    uint32_t fail[SIMDISK_OPS]; /* with -EIO */
    uint32_t part;              /* reads and writes that do only a part, which is no error */
    uint32_t write_back;        /* before a call that changes something: some of what is dirty becomes durable */
    uint32_t lost;              /* of those: it fails, and the next fsync of each descriptor open then says so */
    uint32_t stall;             /* a call takes stall_ns more */
    int64_t stall_ns;
};
void simdisk_set_chances(struct simdisk *d, const struct simdisk_chances *c);
void simdisk_set_capacity(struct simdisk *d, int64_t bytes);
void simdisk_set_fd_limit(struct simdisk *d, int n);
/* Times of all calls, in thousandths: 1000 at first. */
void simdisk_set_slowness(struct simdisk *d, int64_t thousandths);
/* The cache forgets what is clean: after a failed fsync the old bytes are read. */
void simdisk_drop_cache(struct simdisk *d);
/* Rot: what is there changes by itself, in cache and on disk. False: no such file, or it is shorter. */
bool simdisk_poke(struct simdisk *d, const char *path, const void *p, size_t n, int64_t at);
/* Reads of the sector that holds `at` are -EIO until it is written. */
bool simdisk_spoil(struct simdisk *d, const char *path, int64_t at);
/* All of those read zeros from now on, as after a rescue to another disk. */
void simdisk_rescue(struct simdisk *d);

/* Descriptors that are no files' but count: sockets. False: there is none left. */
bool simdisk_take_descriptor(struct simdisk *d);
void simdisk_give_descriptor(struct simdisk *d);

/* ---- looking at it from outside; no call is counted ---- */
uint64_t simdisk_calls(const struct simdisk *d, enum simdisk_op op);
uint64_t simdisk_changes(const struct simdisk *d); /* all calls that change something */
int simdisk_descriptors(const struct simdisk *d);  /* open now */
int64_t simdisk_used(const struct simdisk *d);     /* bytes */
/* -1: it is not there, or (durable) would not be after a cut that keeps only what was synced. */
int64_t simdisk_size(struct simdisk *d, const char *path, bool durable);
/* Bytes read, or -1. */
int64_t simdisk_peek(struct simdisk *d, const char *path, bool durable, void *p, size_t n, int64_t at);
/* The names that lead to it, and these bytes of it, are on the disk as they are in the cache. */
bool simdisk_is_durable(struct simdisk *d, const char *path, int64_t at, int64_t n);
/* Copies what is seen now into a real directory, for people. 0 or -errno. */
int simdisk_export(struct simdisk *d, const char *to);

#endif
