/* The capacity doubles as the buffer grows, up to the cap and one byte for the NUL. A call that
 * does not fit sets `failed` and adds nothing, and so does every call after it. */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALLEST_CAPACITY = 64 };

static bool grow(struct buffer *buffer, size_t wanted);
static uint8_t *move(struct buffer *buffer, size_t capacity);

void buffer_init(struct buffer *buffer, size_t cap_bytes)
{
	*buffer = (struct buffer){.cap = cap_bytes < SIZE_MAX / 2
			? cap_bytes
			: SIZE_MAX / 2}; /* so that cap + 1 never wraps */
}

void buffer_release(struct buffer *buffer)
{
	if (buffer->is_secret)
		buffer_wipe(buffer);
	free(buffer->data);
	*buffer = (struct buffer){0};
}

void buffer_reset(struct buffer *buffer)
{
	buffer->len = 0;
	buffer->failed = false;
	if (buffer->data != NULL)
		buffer->data[0] = 0;
}

void buffer_wipe(struct buffer *buffer)
{
	if (buffer->data != NULL)
		explicit_bzero(buffer->data, buffer->capacity);
	buffer_reset(buffer);
}

uint8_t *buffer_reserve(struct buffer *buffer, size_t len)
{
	const bool fits = !buffer->failed && len <= buffer->cap - buffer->len;
	if (!fits || (buffer->capacity <= buffer->len + len && !grow(buffer, buffer->len + len))) {
		buffer->failed = true;
		return NULL;
	}
	return buffer->data + buffer->len;
}

void buffer_commit(struct buffer *buffer, size_t used)
{
	if (used == 0)
		return;
	ASSERT(buffer->data != NULL && used < buffer->capacity - buffer->len);
	buffer->len += used;
	buffer->data[buffer->len] = 0;
}

void buffer_add(struct buffer *buffer, const void *data, size_t len)
{
	if (len == 0)
		return;
	ASSERT(data != NULL);
	uint8_t *const into = buffer_reserve(buffer, len);
	if (into == NULL)
		return;
	memcpy(into, data, len);
	buffer_commit(buffer, len);
}

void buffer_add_span(struct buffer *buffer, struct span bytes)
{
	buffer_add(buffer, bytes.data, bytes.len);
}

void buffer_add_text(struct buffer *buffer, const char *text)
{
	buffer_add_span(buffer, span_text(text));
}

void buffer_add_byte(struct buffer *buffer, uint8_t byte)
{
	buffer_add(buffer, &byte, 1);
}

void buffer_add_number(struct buffer *buffer, int64_t number)
{
	uint8_t digits[20]; /* the sign and 19 digits */
	uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
	size_t at = sizeof(digits);
	do
		digits[--at] = (uint8_t)('0' + rest % 10);
	while ((rest /= 10) > 0);
	if (number < 0)
		digits[--at] = '-';
	buffer_add(buffer, digits + at, sizeof(digits) - at);
}

/* Prints into the room that is there, and once more when that was too small. */
void buffer_format(struct buffer *buffer, const char *format, ...)
{
	const size_t room = buffer->failed ? 0 : buffer->capacity - buffer->len;
	va_list arguments;
	va_start(arguments, format);
	const int len = vsnprintf(
		room > 0 ? (char *)buffer->data + buffer->len : NULL, room, format, arguments);
	va_end(arguments);
	ASSERT(len >= 0);
	if ((size_t)len < room) {
		buffer_commit(buffer, (size_t)len);
		return;
	}
	if (room > 0)
		buffer->data[buffer->len] = 0;
	uint8_t *const into = buffer_reserve(buffer, (size_t)len);
	if (into == NULL)
		return;
	va_start(arguments, format);
	vsnprintf((char *)into, (size_t)len + 1, format, arguments);
	va_end(arguments);
	buffer_commit(buffer, (size_t)len);
}

void buffer_remove_front(struct buffer *buffer, size_t len)
{
	ASSERT(len <= buffer->len);
	if (len == 0)
		return;
	buffer->len -= len;
	memmove(buffer->data, buffer->data + len, buffer->len + 1);
}

struct span buffer_span(const struct buffer *buffer)
{
	return (struct span){buffer->data, buffer->len};
}

const char *buffer_text(const struct buffer *buffer)
{
	return buffer->data != NULL ? (const char *)buffer->data : "";
}

bool buffer_failed(const struct buffer *buffer)
{
	return buffer->failed;
}

int buffer_check(const struct buffer *buffer, const char *what, struct error *err)
{
	return buffer->failed
		? error_set(err, ERROR_TOO_LARGE, "%s is over %zu bytes", what, buffer->cap)
		: 0;
}

/* Makes room for `wanted` bytes and the NUL. The capacity doubles, so that many small adds copy
 * each byte about once. */
static bool grow(struct buffer *buffer, size_t wanted)
{
	ASSERT(buffer->len <= wanted && wanted <= buffer->cap);
	size_t capacity = buffer->capacity > 0 ? buffer->capacity : SMALLEST_CAPACITY;
	while (capacity < wanted + 1)
		capacity = capacity <= SIZE_MAX / 2 ? capacity * 2 : wanted + 1;
	if (capacity > buffer->cap + 1)
		capacity = buffer->cap + 1;
	uint8_t *const data =
		buffer->is_secret ? move(buffer, capacity) : realloc(buffer->data, capacity);
	if (data == NULL)
		return false;
	data[buffer->len] = 0;
	buffer->data = data;
	buffer->capacity = capacity;
	return true;
}

/* As realloc, without leaving the old bytes behind. */
static uint8_t *move(struct buffer *buffer, size_t capacity)
{
	uint8_t *const data = malloc(capacity);
	if (data == NULL || buffer->data == NULL)
		return data;
	memcpy(data, buffer->data, buffer->len);
	explicit_bzero(buffer->data, buffer->capacity);
	free(buffer->data);
	return data;
}
