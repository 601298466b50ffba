/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zookeeper.connect taken apart, as ZooKeeper's own clients write it: the chroot stands once, behind the last host. Pure, but for
 * zookeeper_target_of(), which reads a file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "daemon/config/broker_config.h"
#include "daemon/meta/register_tree.h"
#include "daemon/meta/zookeeper.h"
#include "lib/base/hostport.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/store/io.h"

enum { ZOOKEEPER_PORT = 2181, DIGEST_MAX = 4096 };

void zookeeper_target_done(struct zookeeper_target *to)
{
    for (int i = 0; i < to->n_hosts; i++)
        free(to->hosts[i].host);
    free(to->hosts);
    free(to->chroot);
    free(to->digest);
    memset(to, 0, sizeof *to);
}

static int add_host(struct zookeeper_target *to, const char *text, size_t n)
{
    struct hostport hp;

    if (!hostport_parse(text, n, &hp) || hp.host.n <= 0 || hp.port == 0)
        return -EINVAL;
    to->hosts = xreallocarray(to->hosts, (size_t)to->n_hosts + 1, sizeof *to->hosts);
    to->hosts[to->n_hosts++] = (struct zookeeper_host){
        .host = xstrndup(hp.host.p, (size_t)hp.host.n),
        .port = hp.port < 0 ? ZOOKEEPER_PORT : hp.port,
    };
    return 0;
}

static int add_hosts(struct zookeeper_target *to, const char *text, size_t n, char *err, size_t err_size)
{
    for (size_t at = 0; at <= n;) {
        const char *comma = memchr(text + at, ',', n - at);
        size_t end = comma == NULL ? n : (size_t)(comma - text);
        size_t from = at;
        while (from < end && text[from] == ' ')
            from++;
        if (add_host(to, text + from, end - from) < 0) {
            snprintf(err, err_size, "zookeeper.connect: \"%.*s\" is not HOST or HOST:PORT", (int)(end - from), text + from);
            return -EINVAL;
        }
        at = end + 1;
    }
    return 0;
}

int zookeeper_target_parse(const char *connect, const char *digest, int session_timeout_ms, struct zookeeper_target *ret,
                           char *err, size_t err_size)
{
    struct zookeeper_target to = { .session_timeout_ms = session_timeout_ms };
    size_t n = strcspn(connect, "/");
    const char *chroot = strcmp(connect + n, "/") == 0 ? "" : connect + n;
    int rc = add_hosts(&to, connect, n, err, err_size);

    if (rc == 0 && chroot[0] != '\0' && !register_path_is_legal(chroot)) {
        snprintf(err, err_size, "zookeeper.connect: the path %s must be like /klog or /apps/klog, behind the last host", chroot);
        rc = -EINVAL;
    }
    if (rc == 0 && digest[0] != '\0' && strchr(digest, ':') == NULL) {
        snprintf(err, err_size, "zookeeper.digest.file: what it has is not USER:PASSWORD");
        rc = -EINVAL;
    }
    to.chroot = xstrdup(chroot);
    to.digest = xstrdup(digest);
    if (rc < 0)
        zookeeper_target_done(&to);
    else
        *ret = to;
    return rc;
}

int zookeeper_target_of(const struct broker_config *c, const struct world *w, struct zookeeper_target *ret, char *err,
                        size_t err_size)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };

    if (c->zookeeper_digest_file[0] != '\0') {
        int rc = io_read_file(w->io, AT_FDCWD, c->zookeeper_digest_file, DIGEST_MAX, &b);
        if (rc < 0) {
            snprintf(err, err_size, "zookeeper.digest.file: cannot read %s: %s", c->zookeeper_digest_file, strerror(-rc));
            return rc;
        }
    }
    bytebuf_add(&b, "", 1);
    char *digest = (char *)b.p;
    digest[strcspn(digest, "\r\n")] = '\0';
    if (c->zookeeper_digest_file[0] != '\0' && digest[0] == '\0') {
        snprintf(err, err_size, "zookeeper.digest.file: %s is empty", c->zookeeper_digest_file);
        return -EINVAL;
    }
    return zookeeper_target_parse(c->zookeeper_connect, digest, c->zookeeper_session_timeout_ms, ret, err, err_size);
}
