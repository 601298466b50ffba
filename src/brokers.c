/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of brokers a user gave, and whether any of them is there at all: a refused connection shall be
 * told at once, with its reason, and not after the time-out that rides out a broker's restart.
 * Blocks (name look-up, connect); one thread.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/check.h"
#include "lib/base/hostport.h"
#include "lib/base/mem.h"
#include "src/session.h"

#define DEFAULT_PORT "9092"

static bool broker_add(struct bytebuf *list, const char *broker)
{
    struct hostport hp;

    if (strpbrk(broker, " \t/") != NULL || !hostport_parse(broker, strlen(broker), &hp))
        return false;
    if (hp.host.n == 0 || hp.port == 0)
        return false;
    bytebuf_printf(list, "%s%s%s", list->n > 0 ? "," : "", broker, hp.port < 0 ? ":" DEFAULT_PORT : "");
    return true;
}

char *brokers_normalise(const char *text)
{
    CLEANUP(freep) char *copy = xstrdup(text);
    CLEANUP(bytebuf_done) struct bytebuf list = { 0 };
    char *rest = copy, *broker;

    while ((broker = strsep(&rest, ",")) != NULL) {
        broker += strspn(broker, " \t");
        for (size_t n = strlen(broker); n > 0 && strchr(" \t", broker[n - 1]) != NULL; n--)
            broker[n - 1] = '\0';
        if (!broker_add(&list, broker))
            return NULL;
    }
    return xstrdup(bytebuf_cstr(&list));
}

static int connect_within(const struct addrinfo *ai, int timeout_ms)
{
    CLEANUP(closep) int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int err = 0;
    socklen_t n = sizeof err;

    if (fd < 0)
        return -errno;
    if (connect(fd, ai->ai_addr, ai->ai_addrlen) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return -errno;

    struct pollfd pfd = { .fd = fd, .events = POLLOUT };
    int ready = poll(&pfd, 1, timeout_ms);
    if (ready < 0)
        return -errno;
    if (ready == 0)
        return -ETIMEDOUT;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &n) < 0)
        return -errno;
    return -err;
}

/* One of a normalised list. */
static int probe_one(const char *broker, int timeout_ms, char *err, size_t err_size)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *list;
    struct hostport hp;
    char port[8];

    bool whole = hostport_parse(broker, strlen(broker), &hp);
    KCHECK(whole && hp.port > 0);
    CLEANUP(freep) char *host = xstrndup(hp.host.p, (size_t)hp.host.n);
    snprintf(port, sizeof port, "%d", (int)hp.port);
    int rc = getaddrinfo(host, port, &hints, &list);
    if (rc != 0) {
        snprintf(err, err_size, "%s: %s", broker, gai_strerror(rc));
        return -EHOSTUNREACH;
    }
    rc = -EHOSTUNREACH;
    for (const struct addrinfo *ai = list; ai != NULL && rc < 0; ai = ai->ai_next)
        rc = connect_within(ai, timeout_ms);
    freeaddrinfo(list);
    if (rc < 0)
        snprintf(err, err_size, "%s: %s", broker, strerror(-rc));
    return rc;
}

int brokers_probe(const char *brokers, int timeout_ms, char *err, size_t err_size)
{
    CLEANUP(freep) char *copy = xstrdup(brokers);
    char *rest = copy, *broker;
    int rc = -EINVAL;

    while ((broker = strsep(&rest, ",")) != NULL) {
        rc = probe_one(broker, timeout_ms, err, err_size);
        if (rc == 0)
            return 0;
    }
    return rc;
}
