/* A borrowed run of bytes: passed by value, never freed through. The lender decides how long it
 * lives. Any thread. */
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
bool span_same_nocase(struct span a, struct span b);     /* the same for two spans */
bool span_starts(struct span whole, struct span prefix);
bool span_ends_text(struct span whole, const char *suffix);
/* by bytes; a prefix comes before the longer span */
int span_compare(struct span a, struct span b);
/* The bytes [from, from + len), clipped to the span. */
struct span span_slice(struct span whole, size_t from, size_t len);
struct span span_trim(struct span text); /* without spaces and tabs at both ends */
/* Cuts `*rest` at the first `separator`: gives the piece before it and leaves in `*rest` what
 * follows. False when `*rest` was exhausted. */
bool span_split(struct span *rest, char separator, struct span *out_piece);
/* The position of a byte, or -1. */
ptrdiff_t span_find(struct span whole, char byte);
/* True for one or more digits without a sign that fit into 64 bits. */
bool span_parse_u64(struct span text, uint64_t *out_value);
/* Its time depends on the lengths alone, not on the bytes: for secrets. */
bool span_equal_secret(struct span a, struct span b);
/* True for well-formed UTF-8, which has no surrogates and no overlong sequences. */
bool span_is_utf8(struct span text);
/* The length of the well-formed UTF-8 sequence at the front; 0 when there is none. */
size_t span_utf8_length(struct span text);

#endif
