/* An upload form read at once and in pieces, with a sink that says "wait" now and then: both must
 * find the same fields and the same file, or both refuse it. The first four bytes cut the body, the
 * next is the boundary's length, then boundary and body follow. */
#include "api/s3/post/form_data.h"

#include <string.h>

#include "base/buffer.h"

enum { NOTES_MAX_BYTES = 8 * 1024 * 1024, ARENA_BYTES = 64 * 1024 * 1024, HEAD_BYTES = 5 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct reader {
	struct buffer notes;
	unsigned rhythm; /* says "wait" before every n-th write; 0: never */
	unsigned writes;
	bool in_file;
};

static void note(struct reader *reader, char kind, struct span text)
{
	buffer_format(&reader->notes, "%c%zu:", kind, text.len);
	buffer_add_span(&reader->notes, text);
}

static int take_field(void *owner, struct span name, struct span value, struct error *err)
{
	(void)err;
	ASSERT(name.len > 0 && value.len <= FORM_DATA_FIELDS_MAX_BYTES &&
		!((struct reader *)owner)->in_file);
	note(owner, 'n', name);
	note(owner, 'v', value);
	return 0;
}

static int take_file(void *owner, struct span file_name, struct error *err)
{
	struct reader *const reader = owner;
	(void)err;
	ASSERT(!reader->in_file);
	reader->in_file = true;
	note(reader, 'f', file_name);
	return 0;
}

static enum sink_result take_bytes(void *owner, struct span bytes, struct error *err)
{
	struct reader *const reader = owner;
	(void)err;
	ASSERT(reader->in_file && bytes.len > 0);
	if (reader->rhythm > 0 && reader->writes++ % (reader->rhythm + 1) == 0)
		return SINK_WAIT;
	buffer_add_span(&reader->notes, bytes);
	return SINK_TAKEN;
}

/* `cuts` NULL: at once. */
static bool read_form(struct reader *reader, struct span boundary, struct span body,
	const uint8_t *cuts, struct error *err)
{
	const struct form_data_events events = {take_field, take_file, take_bytes, reader};
	struct arena *const arena = arena_new(ARENA_BYTES);
	struct form_data *const form = form_data_new(arena, boundary, &events);
	enum sink_result result = SINK_TAKEN;
	for (size_t at = 0, i = 0; at < body.len && result == SINK_TAKEN; i++) {
		struct span piece =
			span_slice(body, at, cuts != NULL ? (size_t)cuts[i % 4] + 1 : body.len);
		while ((result = form_data_write(form, piece, err)) == SINK_WAIT)
			if (reader->writes % 2 == 0) /* more has come meanwhile */
				piece = span_slice(body, at, piece.len + 3);
		at += piece.len;
	}
	const bool good = result == SINK_TAKEN && form_data_finish(form, err) == 0;
	ASSERT(!good || form_data_has_file(form) == reader->in_file);
	ASSERT(good == (err->kind == ERROR_NONE));
	form_data_free(form);
	arena_free(arena);
	return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct reader whole = {.rhythm = 0};
	struct reader pieces = {.rhythm = 0};
	struct error err = {0};
	struct error piece_err = {0};
	if (len < HEAD_BYTES)
		return 0;
	struct span rest = span_of(data + HEAD_BYTES, len - HEAD_BYTES);
	const size_t boundary_len = (size_t)data[4] % 8;
	struct arena *const arena = arena_new(ARENA_BYTES);
	struct span parsed;
	form_data_boundary(rest, arena, &parsed);
	ASSERT(parsed.len <= FORM_DATA_BOUNDARY_MAX_BYTES);
	arena_free(arena);
	const struct span boundary = span_slice(rest, 0, boundary_len);
	if (span_find(boundary, '\r') >= 0)
		return 0;
	buffer_init(&whole.notes, NOTES_MAX_BYTES);
	buffer_init(&pieces.notes, NOTES_MAX_BYTES);
	pieces.rhythm = data[0] % 4;
	const struct span body = span_slice(rest, boundary_len, rest.len);
	const bool good = read_form(&whole, boundary, body, NULL, &err);
	ASSERT(read_form(&pieces, boundary, body, data, &piece_err) == good);
	ASSERT(err.kind == piece_err.kind);
	if (good)
		ASSERT(span_equal(buffer_span(&whole.notes), buffer_span(&pieces.notes)));
	buffer_release(&whole.notes);
	buffer_release(&pieces.notes);
	return 0;
}
