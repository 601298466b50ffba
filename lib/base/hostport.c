/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grammar of HOST:PORT, HOST and [V6]:PORT. A port has digits only: no sign, no white space, no hexadecimal, and nothing
 * above 65535. Which host is meant, whether it may be empty, and which port it is when there is none, is the callers' to say.
 * Pure.
 */
#include "lib/base/hostport.h"

#include <string.h>

#define HOST_MAX 255 /* as in the DNS */

/* Digits only, 0 to 65535; -1 otherwise. */
static int32_t port_parse(const char *s, const char *end)
{
    int32_t port = 0;
    if (s == end || end - s > 5)
        return -1;
    for (; s < end; s++) {
        if (*s < '0' || *s > '9')
            return -1;
        port = port * 10 + (*s - '0');
    }
    return port <= 65535 ? port : -1;
}

/* Where the host ends; NULL: nowhere. */
static const char *host_end(const char *s, const char *end)
{
    if (s < end && *s == '[')
        return memchr(s, ']', (size_t)(end - s));
    const char *colon = memchr(s, ':', (size_t)(end - s));
    return colon != NULL ? colon : end;
}

bool hostport_parse(const char *text, size_t n, struct hostport *ret)
{
    const char *end = text + n, *to = host_end(text, end);
    if (to == NULL)
        return false;
    bool bracketed = to < end && *to == ']';
    const char *from = text + bracketed, *rest = to + bracketed;
    struct hostport hp = { .host = kstr_bytes(from, (size_t)(to - from)), .port = -1 };
    if (hp.host.n > HOST_MAX || (rest < end && *rest != ':'))
        return false;
    if (rest < end && (hp.port = port_parse(rest + 1, end)) < 0)
        return false;
    *ret = hp;
    return true;
}
