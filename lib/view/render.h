/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records as lines, in the forms of docs/filesystem.md: what a form prints for a record depends on nothing but the record and
 * its partition, so it is the same on every mount, in klog, and whenever it is asked for. Pure; any thread.
 *
 *   plain  value '\n'
 *   json   {"partition":0,"offset":7,"timestamp":1700000000000,"key":"k","headers":[{"key":"h","value":"v"}],"value":"v"}
 *          null is null; bytes that are not UTF-8 are in key_base64 or value_base64 instead; RFC 8259
 *   tsv    key TAB value, as PostgreSQL's COPY writes text: \b \f \n \r \t \v \\ and \N for null
 */
#ifndef KLOG_VIEW_RENDER_H
#define KLOG_VIEW_RENDER_H

#include "lib/base/buf.h"
#include "lib/record/iter.h"

enum line_form { LINE_PLAIN, LINE_JSON, LINE_TSV };

/* Appends the record's line, '\n' included. */
void line_render(enum line_form form, int32_t partition, const struct record *r, struct bytebuf *out);
/* How many bytes that would be. */
size_t line_size(enum line_form form, int32_t partition, const struct record *r);

#endif
