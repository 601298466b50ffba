/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The least a FUSE file system can do: one file "p0" whose reads come from memory and whose appends are dropped, or, with
 * -B, sent to a broker (topic "null-fuse", one record each) and acknowledged before write() returns: the floor for an
 * honest `echo >>` onto a mounted log. Threads as libfuse likes; one only with -B.
 *
 *   null-fuse [-z size_MiB] [-B HOST:PORT] MOUNTPOINT
 */
#define FUSE_USE_VERSION 312
#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench.h"

enum { MEMORY_BYTES = 2 << 20, INO_FILE = 2 };

static size_t size_bytes = (size_t)1024 << 20;
static char *memory;
static int broker = -1;

static void attr_fill(fuse_ino_t ino, struct stat *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->st_ino = ino;
    ret->st_mode = ino == INO_FILE ? S_IFREG | 0644 : S_IFDIR | 0755;
    ret->st_nlink = 1;
    ret->st_size = ino == INO_FILE ? (off_t)size_bytes : 0;
    ret->st_blksize = 1 << 17;
}

static void on_init(void *user, struct fuse_conn_info *c)
{
    (void)user;
    c->max_write = c->max_readahead = c->max_read = 1 << 20;
}

static void on_lookup(fuse_req_t r, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param e = { .ino = INO_FILE, .attr_timeout = 3600, .entry_timeout = 3600 };

    if (parent != FUSE_ROOT_ID || strcmp(name, "p0") != 0) {
        fuse_reply_err(r, ENOENT);
        return;
    }
    attr_fill(INO_FILE, &e.attr);
    fuse_reply_entry(r, &e);
}

static void on_getattr(fuse_req_t r, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat s;

    (void)fi;
    attr_fill(ino, &s);
    fuse_reply_attr(r, &s, 3600);
}

static void on_setattr(fuse_req_t r, fuse_ino_t ino, struct stat *s, int set, struct fuse_file_info *fi)
{
    (void)s;
    (void)set;
    on_getattr(r, ino, fi);
}

static void on_open(fuse_req_t r, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    fi->direct_io = 1;
    fi->noflush = 1;
    fuse_reply_open(r, fi);
}

static void on_read(fuse_req_t r, fuse_ino_t ino, size_t n, off_t at, struct fuse_file_info *fi)
{
    (void)ino;
    (void)fi;
    size_t left = (size_t)at < size_bytes ? size_bytes - (size_t)at : 0;
    fuse_reply_buf(r, memory, MIN(n, left));
}

static void on_write(fuse_req_t r, fuse_ino_t ino, const char *p, size_t n, off_t at, struct fuse_file_info *fi)
{
    static struct bytebuf batch, request, reply;

    (void)ino;
    (void)at;
    (void)fi;
    if (broker >= 0) {
        batch_fill(&batch, p, n > 0 && p[n - 1] == '\n' ? n - 1 : n, 1);
        produce_request(&request, "null-fuse", -1, &batch);
        send_all(broker, request.p, request.n);
        recv_reply(broker, &reply);
    }
    fuse_reply_write(r, n);
}

static void on_release(fuse_req_t r, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    (void)fi;
    fuse_reply_err(r, 0);
}

static const struct fuse_lowlevel_ops ops = {
    .init = on_init,       .lookup = on_lookup, .getattr = on_getattr, .setattr = on_setattr,
    .open = on_open,       .read = on_read,     .write = on_write,     .release = on_release,
};

static int serve(const char *mountpoint)
{
    char *words[] = { (char *)"null-fuse", (char *)"-o", (char *)"fsname=null-fuse,max_read=1048576", NULL };
    struct fuse_args args = FUSE_ARGS_INIT(3, words);
    struct fuse_session *s = fuse_session_new(&args, &ops, sizeof ops, NULL);

    if (s == NULL || fuse_set_signal_handlers(s) != 0 || fuse_session_mount(s, mountpoint) != 0)
        die("mount on %s", mountpoint);
    if (broker >= 0) {
        fuse_session_loop(s);
    } else {
        struct fuse_loop_config *c = fuse_loop_cfg_create();
        fuse_session_loop_mt(s, c);
        fuse_loop_cfg_destroy(c);
    }
    fuse_session_unmount(s);
    fuse_session_destroy(s);
    return 0;
}

int main(int argc, char **argv)
{
    int o;

    while ((o = getopt(argc, argv, "z:B:")) != -1) {
        switch (o) {
        case 'z': size_bytes = (size_t)strtoull(optarg, NULL, 10) << 20; break;
        case 'B': broker = dial(optarg); break;
        default: return 2;
        }
    }
    if (optind + 1 != argc)
        die("usage: null-fuse [-z size_MiB] [-B HOST:PORT] MOUNTPOINT");
    memory = aligned_alloc(4096, MEMORY_BYTES);
    if (memory == NULL)
        die("memory");
    memset(memory, 'x', MEMORY_BYTES);
    for (size_t i = 99; i < MEMORY_BYTES; i += 100)
        memory[i] = '\n';
    return serve(argv[optind]);
}
