/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One engine for every message of Kafka's protocol: it decodes, encodes, sizes, prints, compares
 * and makes up messages by walking tables generated from lib/wire/schema/. Pure; any thread.
 */
#ifndef KLOG_WIRE_WIRE_H
#define KLOG_WIRE_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/slice.h"
#include "lib/base/uuid.h"

/* Record bytes. Decoded: p points into the frame. To encode from a file, leave p NULL and set n and ext:
 * the encoder leaves a gap that the caller fills with n bytes from wherever ext says. n = -1 is null. */
struct wire_records {
    const uint8_t *p;
    int32_t n;
    void *ext;
};

struct wire_struct; /* generated tables; see engine.h */
struct wire_message {
    const char *name; /* "ProduceRequest" */
    int16_t api_key;
    int16_t min_version, max_version; /* what the schema describes */
    int16_t flexible_version;         /* first with compact types and tags; INT16_MAX never */
    bool request;
    const struct wire_struct *body;
};

struct wire_api { /* one row an API, by key */
    int16_t key;
    const char *name; /* "Produce" */
    const struct wire_message *request, *response;
    bool klog_only; /* offered only to clients whose software name is klog */
};
const struct wire_api *wire_api_find(int16_t key); /* NULL: unknown */
const struct wire_api *wire_api_at(size_t i);      /* i-th in the table; NULL past the end */

/* Decodes the whole of `in` into *ret (the message's struct). Arrays and tags go to the arena, strings and
 * records point into `in`. Fields outside the version get their defaults. -EBADMSG on anything malformed: too
 * short, trailing bytes, a count larger than the bytes that are left, a null where none is allowed. */
int wire_decode(const struct wire_message *m, int version, struct slice in, struct arena *a, void *ret);
/* The same for what a client sent, whose trailing bytes are ignored, as Kafka's brokers ignore them: librdkafka
 * (2.15) leaves three behind a Metadata request of version 9 and later for all topics. -EMSGSIZE: decoded it would
 * take too much memory; -ENOMEM: there is none. */
int wire_decode_request(const struct wire_message *m, int version, struct slice in, struct arena *a,
                        void *ret);

struct wire_gap { /* n bytes belong between out.p[at - 1] and out.p[at] */
    size_t at;
    int32_t n;
    void *ext;
};
struct wire_out {
    struct bytebuf b;
    struct wire_gap *gaps;
    size_t n_gaps;
    size_t gap_bytes;
    size_t max_bytes; /* b grows to this; 0: as far as it must */
};
void wire_out_done(struct wire_out *o);
/* Appends the encoded body. Fields outside the version must have their defaults unless the schema calls them
 * ignorable: returns -EPROTO and the name of the field in *ret_field (may be NULL) otherwise. -EMSGSIZE: it would pass
 * out->max_bytes; -ENOMEM: there is no memory for it. */
int wire_encode(const struct wire_message *m, int version, const void *msg, struct wire_out *out,
                const char **ret_field);
void wire_defaults(const struct wire_message *m, void *msg); /* sets every field to its default */
/* n elements of an array of structs, each at its default, which is often -1 and not 0:
 *     r.responses = WIRE_NEW(a, fetch_response_responses, n);
 * An element that was only zeroed would be refused by wire_encode, or say what nobody meant. */
#define WIRE_NEW(arena, struct_name, n) \
    ((struct struct_name *)wire_struct_new((arena), &wire_struct_##struct_name, (size_t)(n)))
void *wire_struct_new(struct arena *a, const struct wire_struct *s, size_t n);
size_t wire_msg_size(const struct wire_message *m); /* sizeof the struct */
/* f for each error_code in the message that is not 0, however deep it stands. */
void wire_each_error(const struct wire_message *m, int version, const void *msg, void (*f)(void *arg, int16_t code), void *arg);
bool wire_equal(const struct wire_message *m, int version, const void *a, const void *b);
void wire_print_json(const struct wire_message *m, int version, const void *msg, struct bytebuf *ret);
/* A made-up message for round-trip tests, from a seed. */
void wire_random(const struct wire_message *m, int version, uint64_t *seed, struct arena *a, void *ret);

/* ---- headers (protocol.md section 0) ---- */
struct wire_request_header {
    int16_t api_key, api_version;
    int32_t correlation_id;
    struct kstr client_id;
};
/* Reads the header off the front of frame; *ret_body is the rest. -EBADMSG; -EPROTONOSUPPORT for an unknown
 * API key or a version outside its range: api_key, api_version, correlation_id are then still filled. */
int wire_request_header_read(struct slice frame, struct wire_request_header *ret, struct slice *ret_body);
/* Header with the size prefix left open (4 bytes at the front of out); wire_frame_close fills it in. */
void wire_request_header_write(const struct wire_request_header *h, struct wire_out *out);
void wire_response_header_write(int16_t api_key, int16_t api_version, int32_t correlation_id,
                                struct wire_out *out);
int wire_response_header_read(int16_t api_key, int16_t api_version, struct slice frame,
                              int32_t *ret_correlation_id, struct slice *ret_body);
void wire_frame_close(struct wire_out *out);

#include "lib/wire/messages.h" /* generated: structs, one wire_message a message, enum API_* keys */

#endif
