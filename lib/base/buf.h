/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two kinds of bytes. `struct bytebuf` grows and has one owner. `struct rcbuf` has a
 * fixed size and a reference count, so that a received frame can be held by the
 * connection, the request and the log at once without a copy. The count is atomic.
 */
#ifndef KLOG_BASE_BUF_H
#define KLOG_BASE_BUF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/attr.h"
#include "lib/base/slice.h"

struct bytebuf {
    uint8_t *p;
    size_t n, cap;
};

void bytebuf_done(struct bytebuf *b);                      /* frees; empty and usable again */
uint8_t *bytebuf_room(struct bytebuf *b, size_t n);        /* at least n writable bytes at p + n */
bool bytebuf_try_room(struct bytebuf *b, size_t n);        /* the same; false when there is no memory */
uint8_t *bytebuf_extend(struct bytebuf *b, size_t n);      /* appends n bytes of garbage, returns them */
void bytebuf_add(struct bytebuf *b, const void *p, size_t n);
void bytebuf_adds(struct bytebuf *b, const char *s);
void bytebuf_printf(struct bytebuf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void bytebuf_consume(struct bytebuf *b, size_t n);         /* drops n bytes from the front */
char *bytebuf_cstr(struct bytebuf *b);                     /* NUL-terminated view, not counted in n */

struct rcbuf {
    atomic_int refs;
    size_t n;              /* bytes in use, <= cap */
    size_t cap;
    uint8_t *p;
};

struct rcbuf *rcbuf_new(size_t cap);                       /* one reference, n = 0 */
struct rcbuf *rcbuf_try_new(size_t cap);                   /* NULL when there is no memory */
struct rcbuf *rcbuf_take(struct bytebuf *b);               /* takes the bytes over, leaves b empty */
struct rcbuf *rcbuf_ref(struct rcbuf *b);
void rcbuf_unref(struct rcbuf *b);                         /* NULL is fine */

#endif
