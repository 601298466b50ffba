/* SPDX-License-Identifier: Apache-2.0 */
/* Compiler attributes used across the tree. */
#ifndef KLOG_BASE_ATTR_H
#define KLOG_BASE_ATTR_H

#define CLEANUP(fn)     __attribute__((cleanup(fn)))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define MUST_CHECK      __attribute__((warn_unused_result))
#define NORETURN        __attribute__((noreturn))
#define COLD            __attribute__((cold))
#define likely(x)       __builtin_expect(!!(x), 1)
#define unlikely(x)     __builtin_expect(!!(x), 0)

#define ARRAY_LEN(a)    (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)       ((a) < (b) ? (a) : (b))
#define MAX(a, b)       ((a) > (b) ? (a) : (b))
#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

#endif
