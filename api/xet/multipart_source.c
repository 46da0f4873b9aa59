/* The body alternates between heads, which are printed one at a time, and parts, which are read
 * from their sources. The last head is the closing boundary. */
#include "api/xet/multipart_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/memory.h"
#include "base/random.h"

enum { HEAD_MAX_BYTES = 256 };

struct multipart {
	struct body_source source;
	struct multipart_part *parts;
	size_t count;
	uint64_t total;
	char boundary[MULTIPART_BOUNDARY_BYTES];
	bool may_wait;
	size_t part; /* in progress: its head or, with in_part, its bytes; `count`: the end */
	bool in_part;
	char head[HEAD_MAX_BYTES]; /* of the part, or the closing boundary */
	size_t head_at;
	size_t head_len;
};

static ptrdiff_t multipart_read(
	struct body_source *source, uint8_t *into, size_t capacity, struct error *err);
static void multipart_let_wait(struct body_source *source, source_wake_fn *wake, void *owner);
static size_t give_head(struct multipart *multipart, uint8_t *into, size_t capacity);
static void begin_part(struct multipart *multipart, size_t part);
static size_t write_head(const struct multipart *multipart, size_t part, char out[HEAD_MAX_BYTES]);
static void multipart_close(struct body_source *source);

void multipart_boundary(char out[MULTIPART_BOUNDARY_BYTES])
{
	uint8_t bytes[(MULTIPART_BOUNDARY_BYTES - 1) / 2];
	random_bytes(bytes, sizeof(bytes));
	encode_hex(span_of(bytes, sizeof(bytes)), out);
}

struct body_source *multipart_source_open(const struct multipart_part *parts, size_t count,
	uint64_t total, const char *boundary, uint64_t *out_length)
{
	ASSERT(strlen(boundary) == MULTIPART_BOUNDARY_BYTES - 1);
	ASSERT(count >= 1);
	struct multipart *const multipart = memory_new(sizeof(*multipart));
	multipart->source = (struct body_source){.read = multipart_read, .close = multipart_close};
	multipart->parts = memory_new_array(count, sizeof(*parts));
	memcpy(multipart->parts, parts, count * sizeof(*parts));
	multipart->count = count;
	multipart->total = total;
	memcpy(multipart->boundary, boundary, MULTIPART_BOUNDARY_BYTES);
	char head[HEAD_MAX_BYTES];
	*out_length = write_head(multipart, count, head);
	for (size_t i = 0; i < count; i++) {
		ASSERT(parts[i].first <= parts[i].last && parts[i].source != NULL);
		*out_length +=
			write_head(multipart, i, head) + (parts[i].last - parts[i].first + 1);
		if (parts[i].source->let_wait != NULL)
			multipart->source.let_wait = multipart_let_wait;
	}
	begin_part(multipart, 0);
	return &multipart->source;
}

static ptrdiff_t multipart_read(
	struct body_source *source, uint8_t *into, size_t capacity, struct error *err)
{
	struct multipart *const multipart = (struct multipart *)source;
	size_t used = 0;
	while (used < capacity) {
		if (!multipart->in_part) {
			used += give_head(multipart, into + used, capacity - used);
			continue;
		}
		if (multipart->part == multipart->count)
			break;
		if (multipart->may_wait && used > 0)
			break; /* a wait begins before there are bytes */
		const size_t room = capacity - used;
		struct body_source *const part = multipart->parts[multipart->part].source;
		const ptrdiff_t got = part->read(part, into + used, room, err);
		if (got < 0)
			return got;
		used += (size_t)got;
		if (got == 0)
			begin_part(multipart, multipart->part + 1);
		else if ((size_t)got < room)
			break; /* the part's next record does not fit the rest of `into` */
	}
	return (ptrdiff_t)used;
}

static void multipart_let_wait(struct body_source *source, source_wake_fn *wake, void *owner)
{
	struct multipart *const multipart = (struct multipart *)source;
	multipart->may_wait = true;
	for (size_t i = 0; i < multipart->count; i++) {
		struct body_source *const part = multipart->parts[i].source;
		if (part->let_wait != NULL)
			part->let_wait(part, wake, owner);
	}
}

static size_t give_head(struct multipart *multipart, uint8_t *into, size_t capacity)
{
	const size_t rest = multipart->head_len - multipart->head_at;
	const size_t len = rest < capacity ? rest : capacity;
	memcpy(into, multipart->head + multipart->head_at, len);
	multipart->head_at += len;
	if (multipart->head_at == multipart->head_len)
		multipart->in_part = true;
	return len;
}

/* Begins the head of a part, or the closing boundary. */
static void begin_part(struct multipart *multipart, size_t part)
{
	multipart->part = part;
	multipart->in_part = false;
	multipart->head_at = 0;
	multipart->head_len = write_head(multipart, part, multipart->head);
}

/* Prints the head of a part or, for `count`, the closing boundary. Returns its length. */
static size_t write_head(const struct multipart *multipart, size_t part, char out[HEAD_MAX_BYTES])
{
	const char *const separator = part > 0 ? "\r\n" : "";
	int len;
	if (part == multipart->count)
		len = snprintf(out, HEAD_MAX_BYTES, "%s--%s--\r\n", separator, multipart->boundary);
	else
		len = snprintf(out, HEAD_MAX_BYTES,
			"%s--%s\r\nContent-Type: application/octet-stream\r\nContent-Range: bytes %" PRIu64
			"-%" PRIu64 "/%" PRIu64 "\r\n\r\n",
			separator, multipart->boundary, multipart->parts[part].first,
			multipart->parts[part].last, multipart->total);
	ASSERT(len > 0 && len < HEAD_MAX_BYTES);
	return (size_t)len;
}

static void multipart_close(struct body_source *source)
{
	struct multipart *const multipart = (struct multipart *)source;
	for (size_t i = 0; i < multipart->count; i++)
		multipart->parts[i].source->close(multipart->parts[i].source);
	free(multipart->parts);
	free(multipart);
}
