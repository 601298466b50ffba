/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's sockets, epoll and names (see net.h). No state but a poller's: its epoll, and an eventfd to wake who waits
 * in it. What a socket of another family does not know of the options does no harm.
 */
#include "lib/loop/net.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/loop/loop.h"

enum {
    BACKLOG = 1024,
    EVENTS_MAX = 256,
};

/* ---- sockets ---- */
static int error_closing(int fd)
{
    int err = errno;
    close(fd);
    return -err;
}

static int stream_socket(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return fd < 0 ? -errno : fd;
}

static int real_bind(const struct net *n, const struct sockaddr *sa, socklen_t len)
{
    (void)n;
    int on = 1, off = 0;
    int fd = stream_socket(sa->sa_family);
    if (fd < 0)
        return fd;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (sa->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    return bind(fd, sa, len) == 0 ? fd : error_closing(fd);
}

static int real_listen(const struct net *n, int fd)
{
    (void)n;
    return listen(fd, BACKLOG) < 0 ? -errno : 0;
}

static int real_accept(const struct net *n, int fd)
{
    (void)n;
    int got;
    do
        got = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    while (got < 0 && (errno == EINTR || errno == ECONNABORTED || errno == EPROTO)); /* that one has gone already */
    return got < 0 ? -errno : got;
}

static void set_options(int fd, int sndbuf, int rcvbuf)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    if (sndbuf >= 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof sndbuf);
    if (rcvbuf >= 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof rcvbuf);
}

static void real_options(const struct net *n, int fd, int sndbuf, int rcvbuf)
{
    (void)n;
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && !(flags & O_NONBLOCK))
        fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    set_options(fd, sndbuf, rcvbuf);
}

static int real_connect(const struct net *n, const struct sockaddr *sa, socklen_t len, int sndbuf, int rcvbuf)
{
    (void)n;
    int fd = stream_socket(sa->sa_family);
    if (fd < 0)
        return fd;
    set_options(fd, sndbuf, rcvbuf); /* before, since the window's scale is settled by then */
    if (connect(fd, sa, len) < 0 && errno != EINPROGRESS && errno != EINTR)
        return error_closing(fd);
    return fd;
}

static int real_error(const struct net *n, int fd)
{
    (void)n;
    int err = 0;
    socklen_t size = sizeof err;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size) < 0 ? -errno : -err;
}

static void real_shut(const struct net *n, int fd)
{
    (void)n;
    shutdown(fd, SHUT_WR);
}

static void real_close(const struct net *n, int fd)
{
    (void)n;
    close(fd);
}

static int real_names(const struct net *n, int fd, struct sockaddr_storage *local, struct sockaddr_storage *peer)
{
    (void)n;
    socklen_t local_size = sizeof *local, peer_size = sizeof *peer;
    if (local != NULL && getsockname(fd, (struct sockaddr *)local, &local_size) < 0)
        return -errno;
    if (peer != NULL && getpeername(fd, (struct sockaddr *)peer, &peer_size) < 0)
        return -errno;
    return 0;
}

static int real_spare(const struct net *n)
{
    (void)n;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* ---- bytes ---- */
static int64_t real_readv(const struct net *n, int fd, const struct iovec *iov, int n_iov)
{
    (void)n;
    ssize_t got;
    do
        got = readv(fd, iov, n_iov);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

static int64_t real_writev(const struct net *n, int fd, const struct iovec *iov, int n_iov, bool more)
{
    (void)n;
    /* sendmsg takes iov as one that it could change, and does not. */
    struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)n_iov };
    ssize_t put;
    do
        put = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0));
    while (put < 0 && errno == EINTR);
    return put < 0 ? -errno : put;
}

static int64_t real_sendfile(const struct net *n, int fd, int file, int64_t at, size_t size)
{
    (void)n;
    off_t from = at;
    ssize_t put;
    do
        put = sendfile(fd, file, &from, size);
    while (put < 0 && errno == EINTR);
    return put < 0 ? -errno : put;
}

/* ---- names ---- */
static int real_resolve(const struct net *n, const char *host, const char *port, int flags, struct addrinfo **ret)
{
    (void)n;
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags };
    return getaddrinfo(host, port, &hints, ret);
}

static void real_free_addresses(const struct net *n, struct addrinfo *list)
{
    (void)n;
    freeaddrinfo(list);
}

/* ---- readiness ---- */
struct real_poller {
    struct poller pub;
    int epfd, wake_fd;
};

static struct real_poller *real(struct poller *p)
{
    return container_of(p, struct real_poller, pub);
}

static void real_poller_free(struct poller *p)
{
    if (p == NULL)
        return;
    if (real(p)->wake_fd >= 0)
        close(real(p)->wake_fd);
    if (real(p)->epfd >= 0)
        close(real(p)->epfd);
    free(real(p));
}

/* The eventfd is edge-triggered: each write is an event, and nobody has to read the counter. Its event is the one without
 * a loop_fd. */
static int real_poller_open(struct real_poller *p)
{
    p->epfd = epoll_create1(EPOLL_CLOEXEC);
    if (p->epfd < 0)
        return -errno;
    p->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (p->wake_fd < 0)
        return -errno;
    struct epoll_event ev = { .events = EPOLLIN | EPOLLET, .data.ptr = NULL };
    return epoll_ctl(p->epfd, EPOLL_CTL_ADD, p->wake_fd, &ev) < 0 ? -errno : 0;
}

static struct poller *real_poller_new(const struct net *n)
{
    struct real_poller *p = xcalloc(1, sizeof *p);
    p->pub.net = n;
    p->epfd = p->wake_fd = -1;
    int rc = real_poller_open(p);
    if (rc == 0)
        return &p->pub;
    real_poller_free(&p->pub);
    errno = -rc;
    return NULL;
}

static int real_poller_add(struct poller *p, struct loop_fd *w)
{
    struct epoll_event ev = { .events = w->events, .data.ptr = w };
    return epoll_ctl(real(p)->epfd, EPOLL_CTL_ADD, w->fd, &ev) < 0 ? -errno : 0;
}

static void real_poller_mod(struct poller *p, struct loop_fd *w)
{
    struct epoll_event ev = { .events = w->events, .data.ptr = w };
    int rc = epoll_ctl(real(p)->epfd, EPOLL_CTL_MOD, w->fd, &ev);
    KCHECK(rc == 0);
}

static void real_poller_del(struct poller *p, struct loop_fd *w)
{
    epoll_ctl(real(p)->epfd, EPOLL_CTL_DEL, w->fd, NULL);
}

static int real_poller_wait(struct poller *p, struct poll_event *ret, int max, int timeout_ms)
{
    struct epoll_event events[EVENTS_MAX];
    int got = epoll_wait(real(p)->epfd, events, MIN(max, (int)EVENTS_MAX), timeout_ms), n = 0;
    KCHECK(got >= 0 || errno == EINTR);
    for (int i = 0; i < got; i++) {
        if (events[i].data.ptr != NULL)
            ret[n++] = (struct poll_event){ .w = events[i].data.ptr, .events = events[i].events };
    }
    return n;
}

static void real_poller_wake(struct poller *p)
{
    uint64_t one = 1;
    while (write(real(p)->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

const struct net net_real = {
    .bind = real_bind,
    .listen = real_listen,
    .accept = real_accept,
    .connect = real_connect,
    .error = real_error,
    .options = real_options,
    .shut = real_shut,
    .close = real_close,
    .readv = real_readv,
    .writev = real_writev,
    .sendfile = real_sendfile,
    .names = real_names,
    .spare = real_spare,
    .resolve = real_resolve,
    .free_addresses = real_free_addresses,
    .poller_new = real_poller_new,
    .poller_free = real_poller_free,
    .poller_add = real_poller_add,
    .poller_mod = real_poller_mod,
    .poller_del = real_poller_del,
    .poller_wait = real_poller_wait,
    .poller_wake = real_poller_wake,
};
