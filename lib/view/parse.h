/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines as records: what is appended to a view. The forms are those of render.h; what it prints is read back as the same key,
 * value, headers and timestamp. A line that is not of its form is refused as a whole (L1), nothing in it is guessed.
 *
 *   json   an object with some of: key or key_base64, value or value_base64, headers, timestamp, offset, partition, each once.
 *          A value has to be there, null makes a tombstone. Numbers are whole. offset and partition are read and left aside.
 *   tsv    exactly one TAB that no backslash stands before; backslash and b f n r t v, octal or x and hexadecimal digits as COPY has them, any other character
 *          stands for itself; \N alone is null.
 *
 * No text gets longer by being read, so a line's texts lie in as many bytes as the line has. One thread a parser.
 */
#ifndef KLOG_VIEW_PARSE_H
#define KLOG_VIEW_PARSE_H

#include "lib/base/buf.h"
#include "lib/record/build.h"
#include "lib/view/render.h"

struct line_record {
    bool timed; /* it has a timestamp, in ms; else the time is the reader's */
    int64_t timestamp;
    struct kstr key, value; /* they point into the line or the parser; valid until line_parser_begin */
    size_t first_header;    /* in the parser's headers, which move as more come */
    int32_t n_headers;
};

struct line_parser {
    struct bytebuf texts;
    struct record_header *headers;
    size_t n_headers, cap_headers;
    const char *why; /* of the last line refused, for people; static */
};

void line_parser_init(struct line_parser *p);
void line_parser_done(struct line_parser *p);
/* Forgets what was read; lines of so many bytes in all are to come. */
void line_parser_begin(struct line_parser *p, size_t bytes);
/* A line without its '\n'; it is kept as long as the record. False: it is not of the form (L1). */
bool line_parse(struct line_parser *p, enum line_form form, const char *line, size_t n, struct line_record *ret);

#endif
