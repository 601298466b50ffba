/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front of the register store: every call goes through the table of functions of the back-end that was opened, and the
 * rules that all of them keep (names, versions, who is called back where) are in registers.h.
 */
#include "daemon/meta/registers.h"

#include <string.h>

#include "lib/base/check.h"

enum { OP_BYTES = 64 }; /* what ZooKeeper's protocol puts around an op's path and value, and some more */

size_t registers_multi_bytes(const struct register_op *ops, int n)
{
    size_t ret = 0;

    for (int i = 0; i < n; i++)
        ret += OP_BYTES + strlen(ops[i].path) + ops[i].value.n;
    return ret;
}

void registers_multi(struct registers *r, struct register_op *ops, int n, void (*cb)(void *arg, int rc),
                     void *arg)
{
    KCHECK(n > 0);
    r->ops->multi(r, ops, n, cb, arg);
}

void registers_get(struct registers *r, const char *path,
                   void (*cb)(void *arg, int rc, struct slice value, int64_t version), void *arg)
{
    r->ops->get(r, path, cb, arg);
}

void registers_children(struct registers *r, const char *path,
                        void (*cb)(void *arg, int rc, const char *const *names, int n), void *arg)
{
    r->ops->children(r, path, cb, arg);
}

struct register_watch *registers_watch(struct registers *r, const char *path,
                                       void (*cb)(void *arg, const char *path), void *arg)
{
    return r->ops->watch(r, path, cb, arg);
}

void registers_unwatch(struct registers *r, struct register_watch *w)
{
    r->ops->unwatch(r, w);
}

void registers_sync(struct registers *r, void (*cb)(void *arg, int rc), void *arg)
{
    r->ops->sync(r, cb, arg);
}

void registers_on_session(struct registers *r, void (*cb)(void *arg, enum registers_event ev), void *arg)
{
    r->ops->on_session(r, cb, arg);
}

void registers_renew(struct registers *r)
{
    r->ops->renew(r);
}

int64_t registers_last_reply_ms(struct registers *r)
{
    return r->ops->last_reply_ms(r);
}

void registers_close(struct registers *r)
{
    if (r != NULL)
        r->ops->close(r);
}
