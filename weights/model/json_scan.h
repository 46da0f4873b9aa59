/* Reads JSON from front to back without building a tree, so that a header of 100 MB costs memory
 * for what is kept and nothing else. As strict as RFC 8259: no comments, no trailing commas, no
 * control characters in strings, no lone surrogates. White space passes wherever the grammar lets
 * it. Give it valid UTF-8. After the first fault every call fails; `at` then stands near it. One
 * thread. */
#ifndef WEIGHTS_MODEL_JSON_SCAN_H
#define WEIGHTS_MODEL_JSON_SCAN_H

#include "base/buffer.h"

struct json_scan {
	const uint8_t *begin;
	const uint8_t *at;
	const uint8_t *end;
	const char *fault; /* NULL, or what is wrong at `at` */
};

struct json_scan_pair {
	struct span key;
	struct span value;
};

void json_scan_init(struct json_scan *scan, struct span text);
size_t json_scan_offset(const struct json_scan *scan);
/* Sets the fault unless one stands; always false. */
bool json_scan_fail(struct json_scan *scan, const char *fault);

/* Skips white space, then takes `byte` if it comes next; false without a fault when another
 * does. */
bool json_scan_accept(struct json_scan *scan, char byte);
bool json_scan_expect(struct json_scan *scan, char byte);
/* True when a string comes next; takes nothing but white space. */
bool json_scan_at_string(struct json_scan *scan);
/* Takes the literal null if it comes next. */
bool json_scan_accept_null(struct json_scan *scan);
/* For walking lists: call before each element with *first true at the start. False at `close`
 * (taken) or at a fault. */
bool json_scan_next(struct json_scan *scan, char close, bool *first);

/* Appends the unescaped string to `strings`, whose memory must have been reserved whole (it never
 * needs more than the text itself), so that spans into it stay. */
bool json_scan_string(struct json_scan *scan, struct buffer *strings, struct span *out_text);
/* A member's name and its colon. */
bool json_scan_name(struct json_scan *scan, struct buffer *strings, struct span *out_name);
/* Digits only: a sign, a fraction, an exponent or a value past 64 bits is a fault. */
bool json_scan_u64(struct json_scan *scan, uint64_t *out_value);
/* Any value, nested up to 128 deep. */
bool json_scan_skip(struct json_scan *scan);
/* An object of strings: appends one struct json_scan_pair a member to `pairs`. A value of another
 * type is a fault. */
bool json_scan_pairs(struct json_scan *scan, struct buffer *strings, struct buffer *pairs);
/* True when nothing but white space is left. */
bool json_scan_done(struct json_scan *scan);

/* Appends the text in quotes, escaped as serde_json does: the short escapes, \u00xx for other
 * control characters, the rest as it is. */
void json_scan_quote(struct span text, struct buffer *out);

#endif
