/* Reads JSON from front to back without a tree, so a header of 100 MB takes memory only for what
 * the caller keeps. As strict as RFC 8259: no comments, no trailing commas, no control characters
 * in strings, no lone surrogates. White space is accepted wherever the grammar allows it. The text
 * must be valid UTF-8. After the first fault every call fails, and `at` stays near the fault. One
 * thread. */
#ifndef WEIGHTS_MODEL_JSON_SCAN_H
#define WEIGHTS_MODEL_JSON_SCAN_H

#include "base/buffer.h"

struct json_scan {
	const uint8_t *begin;
	const uint8_t *at;
	const uint8_t *end;
	const char *fault; /* the fault near `at`; NULL: none so far */
};

struct json_scan_pair {
	struct span key;
	struct span value;
};

void json_scan_init(struct json_scan *scan, struct span text);
size_t json_scan_offset(const struct json_scan *scan);
/* Sets the fault unless there is one already. Always returns false. */
bool json_scan_fail(struct json_scan *scan, const char *fault);

/* Skips white space, then takes `byte` if it comes next. False, without a fault, when another byte
 * comes. */
bool json_scan_accept(struct json_scan *scan, char byte);
/* The same, but another byte is a fault. */
bool json_scan_expect(struct json_scan *scan, char byte);
/* True when a string comes next. Takes nothing but white space. */
bool json_scan_at_string(struct json_scan *scan);
/* Takes the literal null if it comes next. */
bool json_scan_accept_null(struct json_scan *scan);
/* Walks a list: call it before each element, with *first true at the start. False at `close`, which
 * it takes, or at a fault. */
bool json_scan_next(struct json_scan *scan, char close, bool *first);

/* Appends the unescaped string to `strings`. The caller must have reserved all memory of `strings`
 * in advance, so that spans into it stay valid; strings never need more bytes than the text. */
bool json_scan_string(struct json_scan *scan, struct buffer *strings, struct span *out_text);
/* Takes a member's name and its colon. */
bool json_scan_name(struct json_scan *scan, struct buffer *strings, struct span *out_name);
/* Takes digits. A sign, a fraction, an exponent or a value over 64 bits is a fault. */
bool json_scan_u64(struct json_scan *scan, uint64_t *out_value);
/* Skips any value, nested up to 128 deep. */
bool json_scan_skip(struct json_scan *scan);
/* Takes an object of strings and appends one struct json_scan_pair for each member to `pairs`. A
 * value of another type is a fault. */
bool json_scan_pairs(struct json_scan *scan, struct buffer *strings, struct buffer *pairs);
struct json_scan_member {
	const char *name;
	bool (*scan)(struct json_scan *scan, void *state); /* takes the member's value */
	bool is_needed;
};
struct json_scan_object {
	const struct json_scan_member *members;
	size_t count;        /* at most 32 */
	const char *missing; /* the fault when a needed member is missing */
};
/* Takes an object and calls `scan` of each known member with `state`; names go to `strings`. Skips
 * unknown members. A known member that is given twice is a fault. */
bool json_scan_members(struct json_scan *scan, const struct json_scan_object *object,
	struct buffer *strings, void *state);
/* True when nothing but white space is left. */
bool json_scan_done(struct json_scan *scan);

/* Appends the text in quotes, escaped as serde_json does it: short escapes, \u00xx for other
 * control characters, all other bytes as they are. */
void json_scan_quote(struct span text, struct buffer *out);

#endif
