/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's requests: each is unpacked, given to what it is about, and answered there; no decision is made
 * here but the refusals that are the same everywhere. An operation without a meaning says EPERM, as a file
 * under chattr +a does, never ENOSYS. Those left out on purpose: lseek, copy_file_range, flock and locks, for
 * which the kernel's own answers are right. Loop's thread.
 */
#include "fuse/ops.h"

#include <errno.h>
#include <limits.h>
#include <linux/fs.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuse/admin.h"
#include "fuse/base/mount.h"
#include "fuse/cluster/statfs.h"
#include "fuse/page/xattr.h"
#include "fuse/partition/poke.h"
#include "fuse/tree/dir.h"
#include "fuse/tree/file.h"
#include "lib/base/mem.h"

/* The kernel takes appends of this size in one request. */
#define WRITE_MAX      (1024 * 1024)
#define BACKGROUND_MAX 64

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
    (void)userdata;
    conn->max_write = WRITE_MAX;
    conn->max_background = BACKGROUND_MAX;
    /* Splicing gains nothing for bytes in memory, and the cache modes tear lines or show NULs at a moving
     * end. */
    conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
                              FUSE_CAP_WRITEBACK_CACHE);
    conn->want |= conn->capable & (FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO |
                                   FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_ASYNC_DIO);
}

/* ---- names ---- */

struct lookup_op {
    struct request r;
    struct lookup l;
};

static void on_lookup(struct lookup *l, int rc, struct node *n)
{
    struct lookup_op *op = container_of(l, struct lookup_op, l);
    struct mount *m = op->r.mount;
    fuse_req_t req = request_take(&op->r);
    if (req != NULL && rc == 0)
        entry_reply(m, n, req);
    else if (req != NULL)
        fuse_reply_err(req, rc == -ENOENT || rc == -ENOTDIR ? -rc : request_errno(rc));
    if (n != NULL)
        node_unref(m, n);
    free(op);
}

/* The kernel lets more pass than any name of a file system may have. */
static bool name_is_too_long(fuse_req_t req, const char *name)
{
    if (strlen(name) <= NAME_MAX)
        return false;
    fuse_reply_err(req, ENAMETOOLONG);
    return true;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct mount *m = mount_of(req);
    if (name_is_too_long(req, name))
        return;
    if (poke_is_caller(m->poke, fuse_req_ctx(req)->pid) && poke_target(m->poke) != 0) {
        struct node *n = node_named(m, node_find(m, parent), name, poke_target(m->poke));
        if (n != NULL) {
            entry_reply(m, n, req);
            return;
        }
    }
    struct lookup_op *op = xcalloc(1, sizeof *op);
    op->l.cb = on_lookup;
    request_begin(&op->r, m, req);
    lookup_begin(m, &op->l, node_find(m, parent), name, METADATA_VALID_MS);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t times)
{
    struct mount *m = mount_of(req);
    node_forget(m, node_find(m, ino), times);
    fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    struct mount *m = mount_of(req);
    for (size_t i = 0; i < count; i++)
        node_forget(m, node_find(m, forgets[i].ino), forgets[i].nlookup);
    fuse_reply_none(req);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    (void)mode;
    if (name_is_too_long(req, name))
        return;
    admin_mkdir(mount_of(req), node_find(mount_of(req), parent), name, req);
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    admin_rmdir(mount_of(req), node_find(mount_of(req), parent), name, req);
}

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *fi)
{
    (void)mode;
    if (name_is_too_long(req, name))
        return;
    admin_create(mount_of(req), node_find(mount_of(req), parent), name, req, fi);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
    (void)rdev;
    if (name_is_too_long(req, name))
        return;
    if (!S_ISREG(mode))
        fuse_reply_err(req, EPERM);
    else
        admin_create(mount_of(req), node_find(mount_of(req), parent), name, req, NULL);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    admin_unlink(mount_of(req), node_find(mount_of(req), parent), name, req);
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    (void)target;
    (void)parent;
    (void)name;
    fuse_reply_err(req, EPERM);
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
                      const char *newname, unsigned flags)
{
    (void)parent;
    (void)name;
    (void)newparent;
    (void)newname;
    (void)flags;
    fuse_reply_err(req, EPERM);
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t newparent, const char *newname)
{
    (void)ino;
    (void)newparent;
    (void)newname;
    fuse_reply_err(req, EPERM);
}

/* ---- attributes ---- */

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct mount *m = mount_of(req);
    struct node *n = node_find(m, ino);
    (void)fi;
    if (node_is_dir(n))
        dir_getattr(m, n, req);
    else
        file_ops_of(m, n)->getattr(m, n, req);
}

/* Owner, group and mode are the mount's: setting them to what they are is fine. */
static bool setattr_owner_allowed(struct mount *m, const struct node *n, const struct stat *attr, int what)
{
    struct stat st;
    if ((what & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) == 0)
        return true;
    node_fill_stat(m, n, &st);
    return ((what & FUSE_SET_ATTR_MODE) == 0 || ((attr->st_mode ^ st.st_mode) & 07777) == 0) &&
           ((what & FUSE_SET_ATTR_UID) == 0 || attr->st_uid == st.st_uid) &&
           ((what & FUSE_SET_ATTR_GID) == 0 || attr->st_gid == st.st_gid);
}

/* Only "touch now" means nothing and is therefore fine; and emptying .config, whose lines are changes,
 * or a position, which is written whole. */
static bool setattr_allowed(struct mount *m, const struct node *n, const struct stat *attr, int what)
{
    if (!setattr_owner_allowed(m, n, attr, what))
        return false;
    if ((what & FUSE_SET_ATTR_SIZE) != 0)
        return n->kind == NODE_TOPIC_CONFIG || n->kind == NODE_POSITION;
    bool atime_set = (what & FUSE_SET_ATTR_ATIME) != 0 && (what & FUSE_SET_ATTR_ATIME_NOW) == 0;
    bool mtime_set = (what & FUSE_SET_ATTR_MTIME) != 0 && (what & FUSE_SET_ATTR_MTIME_NOW) == 0;
    return !atime_set && !mtime_set;
}

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int what, struct fuse_file_info *fi)
{
    struct mount *m = mount_of(req);
    struct node *n = node_find(m, ino);
    if (!setattr_allowed(m, n, attr, what)) {
        fuse_reply_err(req, EPERM);
    } else if (n->kind == NODE_PARTITION && poke_is_caller(m->poke, fuse_req_ctx(req)->pid)) {
        struct stat st;
        file_fill_stat(m, n, &st);
        fuse_reply_attr(req, &st, 0);
    } else {
        op_getattr(req, ino, fi);
    }
}

/* Without it everything is allowed, and `test -x` and `find -executable` take a partition for a program. */
static void op_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
    const struct fuse_ctx *caller = fuse_req_ctx(req);
    struct stat st;
    node_fill_stat(mount_of(req), node_find(mount_of(req), ino), &st);
    mode_t granted = caller->uid == st.st_uid   ? st.st_mode >> 6
                     : caller->gid == st.st_gid ? st.st_mode >> 3
                                                : st.st_mode;
    if (caller->uid == 0) /* reads and writes all, runs what somebody may run */
        granted = R_OK | W_OK | ((st.st_mode & 0111) != 0 ? X_OK : 0);
    fuse_reply_err(req, (mask & (R_OK | W_OK | X_OK) & ~(int)granted) != 0 ? EACCES : 0);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
    (void)ino;
    statfs_ask(mount_of(req), req);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    xattr_get(mount_of(req), node_find(mount_of(req), ino), name, req, size);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
    xattr_list(node_find(mount_of(req), ino), req, size);
}

static void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size,
                        int flags)
{
    (void)ino;
    (void)name;
    (void)value;
    (void)size;
    (void)flags;
    fuse_reply_err(req, EPERM);
}

static void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
    (void)ino;
    (void)name;
    fuse_reply_err(req, EPERM);
}

/* lsattr shows the a of chattr +a, which is what these files are; to set that is fine, as for owner and mode. The kernel asks in the
 * longer form before it sets. */
static void op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned cmd, void *arg, struct fuse_file_info *fi,
                     unsigned flags, const void *in, size_t in_size, size_t out_size)
{
    struct node *n = node_find(mount_of(req), ino);
    bool appends = n->kind == NODE_PARTITION || n->kind == NODE_ANY;
    int attributes = appends ? FS_APPEND_FL : 0;
    struct fsxattr longer = { .fsx_xflags = appends ? FS_XFLAG_APPEND : 0 };
    (void)arg;
    (void)fi;
    (void)flags;
    if (cmd == FS_IOC_GETFLAGS && out_size >= sizeof attributes)
        fuse_reply_ioctl(req, 0, &attributes, sizeof attributes);
    else if (cmd == FS_IOC_FSGETXATTR && out_size >= sizeof longer)
        fuse_reply_ioctl(req, 0, &longer, sizeof longer);
    else if (cmd == FS_IOC_SETFLAGS && in_size >= sizeof attributes && memcmp(in, &attributes, sizeof attributes) == 0)
        fuse_reply_ioctl(req, 0, NULL, 0);
    else
        fuse_reply_err(req, cmd == FS_IOC_SETFLAGS || cmd == FS_IOC_FSSETXATTR ? EPERM : ENOTTY);
}

/* ---- open files ---- */

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct mount *m = mount_of(req);
    struct node *n = node_find(m, ino);
    const struct file_ops *ops = file_ops_of(m, n);
    int err = ops->may_open(m, n, fi->flags);
    if (err != 0) {
        fuse_reply_err(req, err);
        return;
    }
    struct handle *h = handle_new(m, n, fi->flags);
    if (ops->open != NULL)
        ops->open(h, req);
    else
        handle_reply_open(h, req);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
    struct handle *h = handle_of(fi);
    const struct file_ops *ops = file_ops_of(h->mount, h->node);
    (void)ino;
    if (ops->read == NULL)
        fuse_reply_err(req, EBADF);
    else
        ops->read(h, req, size, off, fi);
}

/* The offset is what the kernel believes the size to be: for an append it means nothing. */
static void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
                     struct fuse_file_info *fi)
{
    struct handle *h = handle_of(fi);
    const struct file_ops *ops = file_ops_of(h->mount, h->node);
    (void)ino;
    (void)off;
    if (ops->write == NULL || fi->writepage)
        fuse_reply_err(req, EPERM);
    else
        ops->write(h, req, buf, size, fi);
}

/* A shell sends it before the first write, and each child that had the descriptor does: it is no end of file.
 */
static void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct handle *h = handle_of(fi);
    const struct file_ops *ops = file_ops_of(h->mount, h->node);
    (void)ino;
    if (ops->flush == NULL)
        fuse_reply_err(req, 0);
    else
        ops->flush(h, req);
}

static void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    struct handle *h = handle_of(fi);
    const struct file_ops *ops = file_ops_of(h->mount, h->node);
    (void)ino;
    (void)datasync;
    if (ops->fsync == NULL)
        fuse_reply_err(req, 0);
    else
        ops->fsync(h, req);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    handle_drop(handle_of(fi));
    fuse_reply_err(req, 0);
}

static void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t length,
                         struct fuse_file_info *fi)
{
    (void)ino;
    (void)mode;
    (void)off;
    (void)length;
    (void)fi;
    fuse_reply_err(req, EPERM);
}

static void op_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct fuse_pollhandle *ph)
{
    struct handle *h = handle_of(fi);
    const struct file_ops *ops = file_ops_of(h->mount, h->node);
    (void)ino;
    if (ops->poll != NULL) {
        ops->poll(h, req, ph);
        return;
    }
    if (ph != NULL)
        fuse_pollhandle_destroy(ph);
    fuse_reply_poll(req, POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM);
}

/* ---- directories ---- */

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct mount *m = mount_of(req);
    struct node *n = node_find(m, ino);
    if (n->topic != NULL && n->topic->gone) { /* the kernel then looks the path up anew */
        fuse_reply_err(req, ESTALE);
        return;
    }
    struct handle *h = handle_new(m, n, fi->flags);
    fi->fh = (uintptr_t)h;
    if (fuse_reply_open(req, fi) == -ENOENT)
        handle_drop(h);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
    (void)ino;
    dir_read(handle_of(fi), req, size, off, false);
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
    (void)ino;
    dir_read(handle_of(fi), req, size, off, true);
}

static void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    (void)ino;
    (void)datasync;
    (void)fi;
    fuse_reply_err(req, 0);
}

const struct fuse_lowlevel_ops klogfs_ops = {
    .init = op_init,
    .lookup = op_lookup,
    .forget = op_forget,
    .forget_multi = op_forget_multi,
    .getattr = op_getattr,
    .setattr = op_setattr,
    .mknod = op_mknod,
    .mkdir = op_mkdir,
    .unlink = op_unlink,
    .rmdir = op_rmdir,
    .symlink = op_symlink,
    .rename = op_rename,
    .link = op_link,
    .open = op_open,
    .create = op_create,
    .read = op_read,
    .write = op_write,
    .flush = op_flush,
    .fsync = op_fsync,
    .release = op_release,
    .fallocate = op_fallocate,
    .poll = op_poll,
    .opendir = op_opendir,
    .readdir = op_readdir,
    .readdirplus = op_readdirplus,
    .releasedir = op_release,
    .fsyncdir = op_fsyncdir,
    .statfs = op_statfs,
    .access = op_access,
    .getxattr = op_getxattr,
    .listxattr = op_listxattr,
    .setxattr = op_setxattr,
    .removexattr = op_removexattr,
    .ioctl = op_ioctl,
};
