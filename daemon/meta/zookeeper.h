/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The register store in a ZooKeeper that the brokers of a cluster share. Sessions are lost and made anew, what was sent may
 * have happened or not: registers.h says what the caller hears of it.
 */
#ifndef KLOG_DAEMON_ZOOKEEPER_H
#define KLOG_DAEMON_ZOOKEEPER_H

#include "daemon/meta/registers.h"

/* zookeeper.connect, taken apart: HOST:PORT,HOST:PORT.../CHROOT */
struct zookeeper_host {
    char *host; /* IPv6 without brackets */
    int port;
};
struct zookeeper_target {
    struct zookeeper_host *hosts;
    int n_hosts;
    char *chroot; /* "" none, else a path */
    char *digest; /* "USER:PASSWORD"; "" none */
    int session_timeout_ms;
};
/* -EINVAL and a line. digest may be "". The caller frees with zookeeper_target_done. */
int zookeeper_target_parse(const char *connect, const char *digest, int session_timeout_ms, struct zookeeper_target *ret,
                           char *err, size_t err_size);
/* What the settings say, zookeeper.connect not being empty. Reads zookeeper.digest.file; -EINVAL or the file's error, and a
 * line. */
struct broker_config;
struct world;
int zookeeper_target_of(const struct broker_config *c, const struct world *w, struct zookeeper_target *ret, char *err,
                        size_t err_size);
void zookeeper_target_done(struct zookeeper_target *to);

/* Does not wait for the connection: calls do, for a session's time-out. Registers are created so that only who has the digest
 * can read or change them, when there is one; else everybody can. Takes copies of what to has. -ENOSYS: klogd was built without
 * libzookeeper_mt; -EAGAIN: no threads. */
int registers_open_zookeeper(const struct zookeeper_target *to, struct loop *lp, struct registers **ret, char *err,
                             size_t err_size);

#endif
