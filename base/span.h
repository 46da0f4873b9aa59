/* A borrowed run of bytes: passed by value, never freed through. Lifetime is the lender's. */
#ifndef BASE_SPAN_H
#define BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span {
	const uint8_t *data;
	size_t len;
};

struct span span_of(const void *data, size_t len);
struct span span_text(const char *text); /* without the final NUL; NULL gives the empty span */
bool span_equal(struct span a, struct span b);
bool span_equal_text(struct span a, const char *text);
bool span_equal_nocase(struct span a, const char *text); /* ASCII case only */
bool span_same_nocase(struct span a, struct span b);     /* the same of two spans */
bool span_starts(struct span whole, struct span prefix);
bool span_ends_text(struct span whole, const char *suffix);
int span_compare(struct span a, struct span b); /* byte order, shorter first on a common prefix */
/* Bytes [from, from+len) clipped to the span. */
struct span span_slice(struct span whole, size_t from, size_t len);
struct span span_trim(struct span text); /* without leading and trailing space and tab */
/* Cuts `*rest` at the first `separator`: gives what stood before and leaves `*rest` behind it.
 * False when `*rest` was exhausted. */
bool span_split(struct span *rest, char separator, struct span *out_piece);
/* Position of a byte, or -1. */
ptrdiff_t span_find(struct span whole, char byte);
/* All digits, no sign, no overflow; otherwise false. */
bool span_parse_u64(struct span text, uint64_t *out_value);
/* Takes the time that depends on the lengths alone: for secrets. */
bool span_equal_secret(struct span a, struct span b);
/* Valid UTF-8 without surrogates or overlongs. */
bool span_is_utf8(struct span text);
/* Bytes of the one well-formed UTF-8 sequence at the front; 0 when there is none. */
size_t span_utf8_length(struct span text);

#endif
