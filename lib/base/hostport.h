/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "HOST:PORT" as text: brokers that a client is given, listeners that a broker is given. An IPv6 address stands in brackets,
 * since it has colons of its own: "[::1]:9092". Names are not resolved here. Pure.
 */
#ifndef KLOG_BASE_HOSTPORT_H
#define KLOG_BASE_HOSTPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/slice.h"

struct hostport {
    struct kstr host; /* without brackets; points into what was read; may be empty */
    int32_t port;     /* -1: none was given */
};

/* The n bytes at text. False when they are no such thing. */
bool hostport_parse(const char *text, size_t n, struct hostport *ret);

#endif
