/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listeners and advertised.listeners: text to addresses. Names are not resolved here. Pure.
 *
 * A listener's name is free ("INTERNAL", "PLAINTEXT"), and names join the two keys. The names that
 * Kafka gives to encrypted and authenticated listeners are refused: a client must not believe that
 * it has what it has not.
 */
#include "daemon/config/broker_config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/base/attr.h"
#include "lib/base/hostport.h"
#include "lib/base/mem.h"

struct parsed {
    char *name, *host;
    int32_t port;
};

static void parsed_done(struct parsed *p)
{
    free(p->name);
    free(p->host);
}

static bool name_is_legal(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && s[i] != '_' && s[i] != '-')
            return false;
    return n > 0;
}

static bool name_promises_security(const char *s, size_t n)
{
    static const char *const names[] = { "SSL", "SASL_SSL", "SASL_PLAINTEXT" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strlen(names[i]) == n && strncasecmp(s, names[i], n) == 0)
            return true;
    return false;
}

/* An address with a port; 0 is one that the system chooses. */
static bool address_parse(const char *s, const char *end, struct parsed *p)
{
    struct hostport hp;
    if (!hostport_parse(s, (size_t)(end - s), &hp) || hp.port < 0)
        return false;
    p->host = xstrndup(hp.host.p, (size_t)hp.host.n);
    p->port = hp.port;
    return true;
}

static int bad(const char *key, const char *s, const char *end, const char *why, char *err, size_t err_size)
{
    snprintf(err, err_size, "%s: \"%.*s\" %s", key, (int)(end - s), s, why);
    return -EINVAL;
}

static int entry_parse(const char *key, const char *s, const char *end, struct parsed *p, char *err,
                       size_t err_size)
{
    const char *sep = memmem(s, (size_t)(end - s), "://", 3);
    if (sep == NULL || !name_is_legal(s, (size_t)(sep - s)))
        return bad(key, s, end, "is not of the form NAME://host:port", err, err_size);
    if (name_promises_security(s, (size_t)(sep - s)))
        return bad(key, s, end, "asks for a security protocol that klogd does not have; use PLAINTEXT", err,
                   err_size);
    if (!address_parse(sep + 3, end, p))
        return bad(key, s, end, "has no valid host:port after ://", err, err_size);

    p->name = xstrndup(s, (size_t)(sep - s));
    return 0;
}

static ssize_t find_name(const struct parsed *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(list[i].name, name) == 0)
            return (ssize_t)i;
    return -1;
}

/* Splits at commas; returns the number of entries in ret, or -EINVAL (ret then holds nothing). */
static int list_parse(const char *key, const char *s, struct parsed ret[LISTENERS_MAX], char *err,
                      size_t err_size)
{
    int n = 0, rc = 0;

    while (*s != '\0' && rc == 0) {
        const char *next = strchrnul(s, ','), *end = next;
        while (s < end && isspace((unsigned char)*s))
            s++;
        while (end > s && isspace((unsigned char)end[-1]))
            end--;

        struct parsed p = { 0 };
        if (n == LISTENERS_MAX)
            rc = bad(key, s, end, "is one listener too many", err, err_size);
        else if ((rc = entry_parse(key, s, end, &p, err, err_size)) == 0) {
            if (find_name(ret, (size_t)n, p.name) >= 0)
                rc = bad(key, s, end, "uses a name twice", err, err_size);
            ret[n++] = p;
        } else
            parsed_done(&p);
        s = *next == ',' ? next + 1 : next;
    }
    if (rc == 0)
        return n;
    while (n > 0)
        parsed_done(&ret[--n]);
    return rc;
}

static bool host_is_wildcard(const char *host)
{
    return host[0] == '\0' || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

static void listener_fill(struct broker_listener *l, struct parsed *own, struct parsed *advertised)
{
    l->name = take(&own->name);
    l->host = take(&own->host);
    l->port = own->port;
    if (advertised != NULL) {
        l->advertised_host = xstrdup(advertised->host);
        l->advertised_port = advertised->port;
    } else {
        l->advertised_host = host_is_wildcard(l->host) ? NULL : xstrdup(l->host);
        l->advertised_port = l->port;
    }
}

/* An advertised name must be listened on, and must be somewhere a client can go. */
static int advertised_check(const struct parsed *adv, int n_adv, const struct parsed *own, int n_own,
                            char *err, size_t err_size)
{
    for (int i = 0; i < n_adv; i++) {
        if (find_name(own, (size_t)n_own, adv[i].name) < 0) {
            snprintf(err, err_size,
                     "advertised.listeners: %s is not among listeners; add it there or drop it here",
                     adv[i].name);
            return -EINVAL;
        }
        if (host_is_wildcard(adv[i].host)) {
            snprintf(err, err_size, "advertised.listeners: %s has no host that clients could connect to",
                     adv[i].name);
            return -EINVAL;
        }
    }
    return 0;
}

int broker_config_listeners(const struct broker_config *c, struct broker_listener **ret, size_t *ret_n,
                            char *err, size_t err_size)
{
    struct parsed own[LISTENERS_MAX] = { 0 }, adv[LISTENERS_MAX] = { 0 };

    int n = list_parse("listeners", c->listeners, own, err, err_size);
    if (n < 0)
        return n;
    int n_adv = list_parse("advertised.listeners", c->advertised_listeners, adv, err, err_size);
    int rc = n_adv < 0 ? n_adv : advertised_check(adv, n_adv, own, n, err, err_size);
    if (rc == 0 && n == 0) {
        snprintf(err, err_size, "listeners is empty: give at least one, as PLAINTEXT://127.0.0.1:9092");
        rc = -EINVAL;
    }

    if (rc == 0) {
        *ret = xcalloc((size_t)n, sizeof **ret);
        *ret_n = (size_t)n;
        for (int i = 0; i < n; i++) {
            ssize_t a = find_name(adv, (size_t)n_adv, own[i].name);
            listener_fill(&(*ret)[i], &own[i], a < 0 ? NULL : &adv[a]);
        }
    }
    for (int i = 0; i < n; i++)
        parsed_done(&own[i]);
    for (int i = 0; i < n_adv; i++)
        parsed_done(&adv[i]);
    return rc;
}

void broker_listeners_free(struct broker_listener *ls, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(ls[i].name);
        free(ls[i].host);
        free(ls[i].advertised_host);
    }
    free(ls);
}
