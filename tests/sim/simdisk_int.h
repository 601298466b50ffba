/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated disk from inside. simdisk_file.c has the bytes of one file, simdisk_names.c directories and their changes,
 * simdisk_cut.c what a power cut leaves, simdisk.c descriptors, faults and the table of calls. All under simdisk.mu.
 */
#ifndef KLOG_SIM_SIMDISK_INT_H
#define KLOG_SIM_SIMDISK_INT_H

#include <limits.h>
#include <pthread.h>
#include <sys/queue.h>
#include <uthash.h>

#include "tests/sim/rand.h"
#include "tests/sim/simdisk.h"

/* The element at hand may go. */
#define EACH_SAFE(var, head, field, next) \
    for ((var) = TAILQ_FIRST(head); (var) != NULL && ((next) = TAILQ_NEXT(var, field), true); (var) = (next))

enum { SECTORS = SIMDISK_PAGE / SIMDISK_SECTOR, ALL_SECTORS = 0xff };

/* dirty: the disk has `old` there, and will get what the cache has; lost: the same, but nobody will write it. With neither
 * bit set anywhere `old` is NULL, and the disk has what the cache has. */
struct page {
    uint8_t *cache; /* NULL: zeros */
    uint8_t *old;   /* may be zero_page */
    uint8_t dirty, lost, spoilt;
    bool room; /* the file system gave it space */
};

struct write_done { /* not yet durable, for cuts in order */
    TAILQ_ENTRY(write_done) link;
    uint64_t seq;
    bool truncates; /* to `at` */
    int64_t at;
    size_t n;
    uint8_t bytes[];
};
TAILQ_HEAD(writes, write_done);

struct entry {
    UT_hash_handle hh;
    struct inode *inode; /* one reference */
    char name[];
};

struct inode {
    TAILQ_ENTRY(inode) link; /* in simdisk.inodes */
    uint64_t ino;
    int refs;  /* entries, changes, descriptors */
    bool is_dir;
    int64_t mtime_ns, ctime_ns;
    /* a file's */
    int64_t size;         /* as seen */
    int64_t durable_size; /* after a cut that keeps nothing */
    int64_t min_size;     /* the least since then: below durable_size a truncation is not durable yet */
    struct page *pages;
    size_t n_pages;
    struct writes writes;
    struct descriptor *locked_by;
    /* a directory's */
    struct entry *now, *durable;
    bool reached; /* simdisk_cut.c's mark */
};
TAILQ_HEAD(inodes, inode);

struct change_part {
    struct inode *dir; /* one reference, as has: */
    struct inode *to;  /* NULL: the name goes */
    char *name;
};
struct change { /* of names; rename has two parts, which happen together */
    TAILQ_ENTRY(change) link;
    uint64_t seq;
    int n;
    struct change_part part[2];
};
TAILQ_HEAD(changes, change);

struct descriptor {
    UT_hash_handle hh;
    int fd;
    struct inode *inode;
    int flags;
    bool sync_fails; /* a write-back failed since it was opened */
    char path[];     /* absolute */
};

struct simdisk {
    struct store_io io;
    struct simdisk_config cfg;
    pthread_mutex_t mu;
    struct inode *root;
    struct inodes inodes;
    struct changes changes;
    struct descriptor *open;
    int n_open, n_sockets, next_fd;
    int64_t used;
    uint64_t next_ino, seq;
    bool stopped;
    int64_t stop_at; /* number of a changing call; -1 none */
    uint64_t n_calls[SIMDISK_OPS], n_changes;
    struct simdisk_fault *plan;
    int64_t *plan_seen; /* calls that fitted */
    int n_plan;
    bool plan_hit;
    struct simdisk_chances chances;
    int64_t slowness;
    struct rnd on_list, on_stop, on_fault, on_part, on_back, on_time, on_cut;
};

extern const uint8_t simdisk_zeros[SIMDISK_PAGE];

/* ---- simdisk_file.c ---- */
struct inode *inode_new(struct simdisk *d, bool is_dir);
struct inode *inode_ref(struct inode *i);
void inode_unref(struct simdisk *d, struct inode *i);
int64_t file_read(const struct inode *i, void *p, size_t n, int64_t at); /* -EIO: spoilt */
int64_t file_write(struct simdisk *d, struct inode *i, const void *p, size_t n, int64_t at); /* count, -ENOSPC */
void file_truncate(struct simdisk *d, struct inode *i, int64_t size);
int file_allocate(struct simdisk *d, struct inode *i, bool keep_size, int64_t at, int64_t n);
int64_t file_seek_data(const struct inode *i, int64_t at);
void file_sync(struct inode *i);
void file_sync_fails(struct inode *i);
bool file_is_dirty(const struct inode *i);
/* Some of its dirty sectors become durable; fails: they are lost instead. */
void file_write_back(struct inode *i, struct rnd *r, bool fails);
void file_drop_cache(struct inode *i);
void file_poke(struct inode *i, const void *p, size_t n, int64_t at);
void file_peek_durable(const struct inode *i, void *p, size_t n, int64_t at);
void file_cut(struct simdisk *d, struct inode *i, enum simdisk_cut how, struct rnd *r, uint64_t until);
int64_t file_space(const struct inode *i);

/* ---- simdisk_names.c ---- */
struct inode *names_get(struct entry *map, const char *name);
void names_clear(struct simdisk *d, struct entry **map);
void names_copy(struct simdisk *d, struct entry **to, struct entry *from);
/* Walks to the directory of the last component; name: NAME_MAX + 1 bytes, "." for the directory itself. */
int names_walk(struct inode *from, const char *path, bool durable, struct inode **ret_dir, char *name);
struct inode *names_find(struct inode *from, const char *path, bool durable, int *ret_error);
void names_change(struct simdisk *d, int n, const struct change_part *parts);
void names_sync(struct simdisk *d, const struct inode *dir); /* NULL: all of them */
void names_make_durable(struct simdisk *d, struct change *c);
void names_cut(struct simdisk *d, enum simdisk_cut how, struct rnd *r, uint64_t until);

#endif
