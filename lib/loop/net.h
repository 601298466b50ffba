/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network and readiness: sockets and epoll in a program (net_real.c), byte queues and a list of what is ready in a test.
 * Members answer 0, a count, or -errno, never -EINTR, and nothing blocks but resolve. Descriptors are small numbers of this
 * network's own; those of a simulated one begin at 1 << 20, so that a stray system call gets EBADF.
 */
#ifndef KLOG_LOOP_NET_H
#define KLOG_LOOP_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

struct addrinfo;
struct loop_fd;

/* What a poller says of one descriptor: events as EPOLLIN, EPOLLOUT, ... */
struct poll_event {
    struct loop_fd *w;
    uint32_t events;
};

/* What every poller begins with. */
struct poller {
    const struct net *net;
};

struct net {
    /* Any thread. Bound, with the port settled; whoever connects is refused until listen. IPv6's "any" takes IPv4 as well. */
    int (*bind)(const struct net *n, const struct sockaddr *sa, socklen_t len);
    int (*listen)(const struct net *n, int fd);
    int (*accept)(const struct net *n, int fd); /* a connected descriptor; -EAGAIN: none waits */
    /* A descriptor on its way: it becomes writable, then error() says how it went. -1: the kernel's sizes of buffers. */
    int (*connect)(const struct net *n, const struct sockaddr *sa, socklen_t len, int sndbuf, int rcvbuf);
    int (*error)(const struct net *n, int fd); /* 0 or the -errno that is pending */
    void (*options)(const struct net *n, int fd, int sndbuf, int rcvbuf); /* of what was accepted: these, and no delay */
    void (*shut)(const struct net *n, int fd);                            /* nothing more will be written */
    void (*close)(const struct net *n, int fd);
    int64_t (*readv)(const struct net *n, int fd, const struct iovec *iov, int n_iov); /* 0: end of file */
    /* more: of the next call's bytes, which may share a packet with these. */
    int64_t (*writev)(const struct net *n, int fd, const struct iovec *iov, int n_iov, bool more);
    /* file: a descriptor of the same world's store_io. 0: the file ends before that. */
    int64_t (*sendfile)(const struct net *n, int fd, int file, int64_t at, size_t size);
    int (*names)(const struct net *n, int fd, struct sockaddr_storage *local, struct sockaddr_storage *peer); /* either may be NULL */
    /* A descriptor that is good for nothing but to be closed when there are no others. */
    int (*spare)(const struct net *n);
    /* 0 or an EAI_ value; *ret is freed with free_addresses. flags as getaddrinfo's; without AI_NUMERICHOST it may block. */
    int (*resolve)(const struct net *n, const char *host, const char *port, int flags, struct addrinfo **ret);
    void (*free_addresses)(const struct net *n, struct addrinfo *list);

    /* Readiness, level-triggered. One a loop, its thread alone; poller_wake from any thread. NULL and errno. */
    struct poller *(*poller_new)(const struct net *n);
    void (*poller_free)(struct poller *p); /* NULL is fine */
    int (*poller_add)(struct poller *p, struct loop_fd *w);
    void (*poller_mod)(struct poller *p, struct loop_fd *w);
    void (*poller_del)(struct poller *p, struct loop_fd *w);
    /* At most max events, in ret; waits up to timeout_ms (-1: for ever) for the first, or for a poller_wake. */
    int (*poller_wait)(struct poller *p, struct poll_event *ret, int max, int timeout_ms);
    void (*poller_wake)(struct poller *p);
};

extern const struct net net_real;

#endif
