/* The bytes come from memory when the source is inline, from a derived_body when it is derived
 * itself, and else from a stream over its segments. A stream only goes forward: a small gap is read
 * over, and any other jump opens a new stream. So the packs stay held until close, one hold for
 * each series of segments of one pack. */
#include "storage/versions/derived_input.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/packs/assemble.h"
#include "storage/versions/derived_body.h"
#include "storage/versions/derived_row.h"
#include "storage/versions/part.h"
#include "storage/versions/version.h"

enum { SKIP_BYTES = 256 * 1024 }; /* a gap up to this size is read over, not sought past */

struct derived_input {
	struct store *store;
	uint64_t from; /* the range that can be read */
	uint64_t to;
	struct body_source *stream; /* over the segments, at `at`; NULL: none is open */
	uint64_t at;                /* UINT64_MAX: somewhere, after a read that must be repeated */
	source_wake_fn *wake;       /* NULL: reads may block */
	void *owner;
	struct derived_body *body; /* of a source that is derived itself */
	struct part_range range;   /* the segments of a plain source */
	uint8_t *turns;            /* of the hold on each segment's pack */
	size_t held;
	uint8_t *bytes; /* of an inline source */
};

static bool same_pack_as_before(const struct derived_input *input, size_t i)
{
	const struct segment *const segments = input->range.segments;
	return i > 0 &&
		memcmp(&segments[i].pack, &segments[i - 1].pack, sizeof(struct pack_id)) == 0;
}

void derived_input_close(struct derived_input *input)
{
	if (input == NULL)
		return;
	if (input->stream != NULL)
		input->stream->close(input->stream);
	for (size_t i = 0; i < input->held; i++)
		if (!same_pack_as_before(input, i))
			pack_store_unhold(store_packs(input->store), &input->range.segments[i].pack,
				input->turns[i]);
	derived_body_close(input->body);
	free(input->range.segments);
	free(input->turns);
	free(input->bytes);
	free(input);
}

static int open_inline(struct derived_input *input, struct db *db, const struct version *version,
	struct error *err)
{
	struct span bytes;
	struct db_statement *statement = NULL;
	if (part_inline_load(db, version->sequence, version->contents, &bytes, &statement, err) !=
		0)
		return -1;
	const struct span part =
		span_slice(bytes, (size_t)input->from, (size_t)(input->to - input->from));
	input->bytes = memory_copy(part.data, part.len);
	db_reset(statement);
	return part.len == input->to - input->from
		? 0
		: error_set(err, ERROR_CORRUPT, "A source of a derived object is too short.");
}

static int open_segments(struct derived_input *input, struct db *db, const struct version *version,
	size_t max_segments, struct error *err)
{
	input->range = (struct part_range){.offset = input->from,
		.length = input->to - input->from,
		.max_segments = max_segments};
	if (part_set_load(db, version->part_set, version->size, version->contents, &input->range,
		    err) != 0)
		return -1;
	input->turns = memory_new(input->range.segment_count + 1);
	for (; input->held < input->range.segment_count; input->held++)
		if (!same_pack_as_before(input, input->held))
			input->turns[input->held] =
				(uint8_t)pack_store_hold(store_packs(input->store),
					&input->range.segments[input->held].pack);
	return 0;
}

static int open_derived(struct derived_input *input, struct db *db, const struct version *version,
	unsigned levels, size_t max_segments, struct error *err)
{
	if (levels == 0)
		return error_set(err, ERROR_CORRUPT,
			"Version %lld nests derived versions more than %d deep.",
			(long long)version->sequence, DERIVED_DEPTH_MAX);
	const struct derived_body_params params = {
		.store = input->store,
		.db = db,
		.recipe = derived_row_load(db, version->sequence, version->contents, err),
		.from = input->from,
		.to = input->to,
		.levels = levels,
		.max_segments = max_segments,
	};
	input->body = params.recipe == NULL ? NULL : derived_body_open(&params, err);
	return input->body == NULL ? -1 : 0;
}

static int open_version(struct derived_input *input, struct db *db,
	const struct derived_input_params *params, struct error *err)
{
	const struct derived_source *const source = params->source;
	struct version version;
	const int found = version_find_sequence(db, source->version, NULL, &version, err);
	if (found < 0)
		return -1;
	if (found == 0)
		return error_set(
			err, ERROR_NO_KEY, "A source version of a derived object does not exist.");
	if (version.is_marker || version.size != source->size)
		return error_set(err, ERROR_CORRUPT,
			"Version %lld is not the source that a derived object names.",
			(long long)source->version);
	if (version.kind == VERSION_INLINE)
		return open_inline(input, db, &version, err);
	return version.kind == VERSION_DERIVED
		? open_derived(input, db, &version, params->levels, params->max_segments, err)
		: open_segments(input, db, &version, params->max_segments, err);
}

struct derived_input *derived_input_open(struct store *store, struct db *db,
	const struct derived_input_params *params, struct error *err)
{
	struct derived_input *const input = memory_new(sizeof(*input));
	ASSERT(params->from <= params->to && params->to <= params->source->size);
	input->store = store;
	input->from = params->from;
	input->to = params->to;
	if (open_version(input, db, params, err) == 0)
		return input;
	derived_input_close(input);
	return NULL;
}

void derived_input_let_wait(struct derived_input *input, source_wake_fn *wake, void *owner)
{
	ASSERT(wake != NULL);
	input->wake = wake;
	input->owner = owner;
	if (input->body != NULL)
		derived_body_let_wait(input->body, wake, owner);
	if (input->stream != NULL && input->stream->let_wait != NULL)
		input->stream->let_wait(input->stream, wake, owner);
}

static int read_stream(struct derived_input *input, uint8_t *into, size_t len, struct error *err)
{
	ptrdiff_t got = 1;
	size_t have = 0;
	ASSERT(input->stream != NULL);
	while (have < len &&
		(got = input->stream->read(input->stream, into + have, len - have, err)) > 0)
		have += (size_t)got;
	if (got == SOURCE_WAIT) {
		input->at = UINT64_MAX;
		return error_set(err, ERROR_NOT_READY, "The bytes are on their way.");
	}
	input->at += len;
	if (have == len)
		return 0;
	if (got == 0)
		error_set(err, ERROR_CORRUPT, "The bytes of an object ended before its size.");
	input->stream->close(input->stream); /* it stands somewhere before `at` */
	input->stream = NULL;
	return -1;
}

static int skip(struct derived_input *input, uint64_t bytes, struct error *err)
{
	uint8_t passed[4096];
	int result = 0;
	for (; result == 0 && bytes > 0; bytes -= bytes < sizeof(passed) ? bytes : sizeof(passed))
		result = read_stream(input, passed,
			bytes < sizeof(passed) ? (size_t)bytes : sizeof(passed), err);
	return result;
}

static int seek(struct derived_input *input, uint64_t offset, struct error *err)
{
	if (input->stream != NULL && offset >= input->at && offset - input->at <= SKIP_BYTES)
		return skip(input, offset - input->at, err);
	if (input->stream != NULL)
		input->stream->close(input->stream);
	input->at = offset;
	input->stream = assemble_open(store_packs(input->store), input->range.segments,
		input->range.segment_count, input->range.skip + (offset - input->from),
		input->to - offset, err);
	if (input->stream == NULL)
		return -1;
	if (input->wake != NULL && input->stream->let_wait != NULL)
		input->stream->let_wait(input->stream, input->wake, input->owner);
	return 0;
}

int derived_input_read_base(
	struct derived_input *input, uint64_t offset, uint8_t *into, size_t len, struct error *err)
{
	return input->body != NULL ? derived_body_read_base(input->body, offset, into, len, err)
				   : derived_input_read(input, offset, into, len, err);
}

int derived_input_read(
	struct derived_input *input, uint64_t offset, uint8_t *into, size_t len, struct error *err)
{
	ASSERT(offset >= input->from && offset <= input->to && len <= input->to - offset);
	if (len == 0)
		return 0;
	if (input->body != NULL)
		return derived_body_read(input->body, offset, into, len, err);
	if (input->bytes != NULL) {
		memcpy(into, input->bytes + (offset - input->from), len);
		return 0;
	}
	return seek(input, offset, err) != 0 ? -1 : read_stream(input, into, len, err);
}

int derived_input_check_damaged(struct derived_input *input, struct error *err)
{
	const struct part_range *const range = &input->range;
	if (input->body != NULL)
		return derived_body_check_damaged(input->body, err);
	return assemble_check_damaged(store_packs(input->store), range->segments,
		range->segment_count, range->skip, input->to - input->from, err);
}
