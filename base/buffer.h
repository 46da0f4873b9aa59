/* Owned, growable, capped bytes. Always NUL-terminated for convenience, but `len` is the truth.
 * Growing past the cap sets a sticky flag and drops the bytes: build first, then test buffer_failed
 * once. One thread at a time. */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include "base/error.h"
#include "base/span.h"

struct buffer {
	uint8_t *data;
	size_t len;
	size_t capacity;
	size_t cap; /* the most bytes that it may ever hold */
	bool failed;
	bool is_secret; /* set after buffer_init: memory is overwritten before it is freed */
};

void buffer_init(struct buffer *buffer, size_t cap_bytes);
/* The buffer must pass buffer_init before it is used again. A zeroed buffer is fine. */
void buffer_release(struct buffer *buffer);
void buffer_reset(struct buffer *buffer); /* len 0, flag cleared; keeps memory and cap */
/* The same, and overwrites all its memory. */
void buffer_wipe(struct buffer *buffer);

void buffer_add(struct buffer *buffer, const void *data, size_t len);
void buffer_add_span(struct buffer *buffer, struct span bytes);
void buffer_add_text(struct buffer *buffer, const char *text);
void buffer_add_byte(struct buffer *buffer, uint8_t byte);
void buffer_add_number(struct buffer *buffer, int64_t number); /* in decimal digits */
void buffer_format(struct buffer *buffer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Returns room for `len` more bytes after the current end, or NULL when that is past the cap.
 * buffer_commit makes the first `used` of them part of the buffer. */
uint8_t *buffer_reserve(struct buffer *buffer, size_t len);
void buffer_commit(struct buffer *buffer, size_t used);
void buffer_remove_front(struct buffer *buffer, size_t len);

struct span buffer_span(const struct buffer *buffer);
const char *buffer_text(const struct buffer *buffer); /* "" when nothing was added */
bool buffer_failed(const struct buffer *buffer);
/* Returns 0, or -1 with too_large: "<what> is over <cap> bytes". */
int buffer_check(const struct buffer *buffer, const char *what, struct error *err);

#endif
