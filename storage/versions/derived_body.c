/* Each read finds the piece of its first byte. Literals and copies are read at once. In a delta
 * piece a walk goes from block to block, reading only headers, up to the block that makes the byte;
 * the walk stays where it is, so that reads from front to back never walk twice. A block is decoded
 * where the caller wants it when all of it is wanted, else into `block`, from which later reads are
 * served. */
#include "storage/versions/derived_body.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/versions/derived_input.h"
#include "weights/codec/block_code.h"

enum { BLOCK_MAX_BYTES = 8 * BLOCK_CODE_ELEMENTS }; /* of the widest elements */

struct derived_body {
	const struct derived_recipe *recipe;
	bool is_borrowed;
	bool is_far;                        /* the packs lie in a far place */
	struct derived_input **inputs;      /* one for each source; NULL: not needed */
	struct block_code_context *context; /* made when the first block is decoded */
	/* The decoded block in `block`: */
	bool has_block;
	uint64_t block_start; /* in the result */
	size_t block_len;
	struct buffer block;
	/* The position of the walk over the blocks of a piece: */
	bool is_walking;
	size_t piece;
	uint64_t made;       /* bytes of the piece before the next block */
	uint64_t walked;     /* bytes that the blocks before it take */
	struct buffer ahead; /* bytes of blocks from there on, already read */
};

struct piece_room { /* where a read puts its bytes */
	uint8_t *into;
	size_t capacity;
};
struct needed_range { /* of one source */
	uint64_t from;
	uint64_t to;
};

struct derived_stream {
	struct body_source source; /* must be the first member */
	struct derived_body *body;
	uint64_t at;
	uint64_t to;
	bool may_wait;
	bool failed;
	struct error error;
};

static int open_inputs(
	struct derived_body *body, const struct derived_body_params *params, struct error *err);
static void find_needed(const struct derived_recipe *recipe, uint64_t from, uint64_t to,
	struct needed_range *needed);
static void widen_delta(const struct derived_recipe *recipe, size_t index, uint64_t first,
	uint64_t end, struct needed_range *needed);
static void widen(struct needed_range *needed, uint64_t offset, uint64_t length);
static int read_exactly(struct derived_body *body, uint64_t offset, bool proves, uint8_t *into,
	size_t len, struct error *err);
static ptrdiff_t read_some(struct derived_body *body, uint64_t offset, bool proves,
	struct piece_room room, struct error *err);
static ptrdiff_t read_delta(struct derived_body *body, size_t index, uint64_t offset, bool proves,
	struct piece_room room, struct error *err);
static bool block_holds(const struct derived_body *body, uint64_t offset);
static int walk_to(struct derived_body *body, size_t index, uint64_t offset,
	struct block_code_facts *facts, struct error *err);
static int parse_block(struct derived_body *body, const struct derived_piece *piece,
	uint64_t length, struct block_code_facts *out, struct error *err);
static int look_ahead(struct derived_body *body, const struct derived_piece *piece, uint64_t len,
	struct error *err);
static int block_is_too_large(struct error *err);
static int block_is_bad(const struct derived_body *body, const char *why, struct error *err);
static void pass_block(struct derived_body *body, const struct block_code_facts *facts);
static int make_block(struct derived_body *body, const struct block_code_facts *facts, bool proves,
	uint8_t *into, struct error *err);
static int decode_block(struct derived_body *body, const struct derived_piece *piece,
	const struct block_code_facts *facts, bool proves, uint8_t *into, struct error *err);
static int keep_block(
	struct derived_body *body, const struct block_code_facts *facts, struct error *err);
static ptrdiff_t derived_stream_read(
	struct body_source *source, uint8_t *into, size_t capacity, struct error *err);
static void derived_stream_let_wait(struct body_source *source, source_wake_fn *wake, void *owner);
static void derived_stream_close(struct body_source *source);

struct derived_body *derived_body_open(const struct derived_body_params *params, struct error *err)
{
	struct derived_body *const body = memory_new(sizeof(*body));
	ASSERT(params->levels > 0 && params->from <= params->to &&
		params->to <= derived_recipe_size(params->recipe));
	body->recipe = params->recipe;
	body->is_borrowed = params->is_borrowed;
	body->is_far = pack_store_is_far(store_packs(params->store));
	body->inputs =
		memory_new_array(params->recipe->source_count + 1, sizeof(struct derived_input *));
	buffer_init(&body->block, BLOCK_MAX_BYTES);
	buffer_init(&body->ahead, BLOCK_CODE_HEADER_MAX + block_code_payload_max());
	if (open_inputs(body, params, err) == 0)
		return body;
	derived_body_close(body);
	return NULL;
}

void derived_body_close(struct derived_body *body)
{
	if (body == NULL)
		return;
	for (size_t i = 0; i < body->recipe->source_count; i++)
		derived_input_close(body->inputs[i]);
	free(body->inputs);
	block_code_context_free(body->context);
	buffer_release(&body->block);
	buffer_release(&body->ahead);
	if (!body->is_borrowed)
		derived_recipe_free((struct derived_recipe *)body->recipe);
	free(body);
}

int derived_body_read(
	struct derived_body *body, uint64_t offset, uint8_t *into, size_t len, struct error *err)
{
	return read_exactly(body, offset, true, into, len, err);
}

int derived_body_read_base(
	struct derived_body *body, uint64_t offset, uint8_t *into, size_t len, struct error *err)
{
	return read_exactly(body, offset, false, into, len, err);
}

void derived_body_let_wait(struct derived_body *body, source_wake_fn *wake, void *owner)
{
	for (size_t i = 0; i < body->recipe->source_count; i++)
		if (body->inputs[i] != NULL)
			derived_input_let_wait(body->inputs[i], wake, owner);
}

int derived_body_check_damaged(const struct derived_body *body, struct error *err)
{
	int result = 0;
	for (size_t i = 0; result == 0 && i < body->recipe->source_count; i++)
		if (body->inputs[i] != NULL)
			result = derived_input_check_damaged(body->inputs[i], err);
	return result;
}

struct body_source *derived_body_source(struct derived_body *body, uint64_t from, uint64_t to)
{
	struct derived_stream *const stream = memory_new(sizeof(*stream));
	ASSERT(body != NULL && from <= to && to <= derived_recipe_size(body->recipe));
	stream->source = (struct body_source){.read = derived_stream_read,
		.let_wait = body->is_far ? derived_stream_let_wait : NULL,
		.close = derived_stream_close};
	stream->body = body;
	stream->at = from;
	stream->to = to;
	return &stream->source;
}

static int open_inputs(
	struct derived_body *body, const struct derived_body_params *params, struct error *err)
{
	const struct derived_recipe *const recipe = params->recipe;
	struct needed_range *const needed =
		memory_new_array(recipe->source_count + 1, sizeof(*needed));
	int result = 0;
	find_needed(recipe, params->from, params->to, needed);
	for (size_t i = 0; result == 0 && i < recipe->source_count; i++) {
		if (needed[i].to == 0)
			continue;
		const struct derived_input_params input = {.source = &recipe->sources[i],
			.from = needed[i].from,
			.to = needed[i].to,
			.levels = params->levels - 1,
			.max_segments = params->max_segments};
		body->inputs[i] = derived_input_open(params->store, params->db, &input, err);
		result = body->inputs[i] == NULL ? -1 : 0;
	}
	free(needed);
	return result;
}

/* Finds the range of each source that [from, to) is made of. */
static void find_needed(const struct derived_recipe *recipe, uint64_t from, uint64_t to,
	struct needed_range *needed)
{
	if (from == to)
		return;
	for (size_t i = derived_recipe_find(recipe, from);
		i < recipe->piece_count && derived_recipe_start(recipe, i) < to; i++) {
		const struct derived_piece *const piece = &recipe->pieces[i];
		const uint64_t start = derived_recipe_start(recipe, i);
		const uint64_t first = from > start ? from - start : 0;
		const uint64_t end = (to < piece->end ? to : piece->end) - start;
		if (piece->kind == DERIVED_COPY)
			widen(&needed[piece->source], piece->offset + first, end - first);
		else if (piece->kind == DERIVED_DELTA)
			widen_delta(recipe, i, first, end, needed);
	}
}

/* Bytes [first, end) of a delta piece. The walk to their blocks begins at the first block. A block
 * begins less than one whole block before any of its bytes, and ends less than one behind it. */
static void widen_delta(const struct derived_recipe *recipe, size_t index, uint64_t first,
	uint64_t end, struct needed_range *needed)
{
	const struct derived_piece *const piece = &recipe->pieces[index];
	const uint64_t length = derived_piece_length(recipe, index);
	const uint64_t block = block_code_bytes(piece->dtype);
	const uint64_t from = first > block ? first - block : 0;
	const uint64_t to = length - end > block ? end + block : length;
	widen(&needed[piece->source], piece->offset + from, to - from);
	widen(&needed[piece->delta], piece->delta_offset, piece->delta_length);
}

static void widen(struct needed_range *needed, uint64_t offset, uint64_t length)
{
	const bool is_first = needed->to == 0;
	if (is_first || offset < needed->from)
		needed->from = offset;
	if (is_first || offset + length > needed->to)
		needed->to = offset + length;
}

static int read_exactly(struct derived_body *body, uint64_t offset, bool proves, uint8_t *into,
	size_t len, struct error *err)
{
	ASSERT(offset <= derived_recipe_size(body->recipe) &&
		len <= derived_recipe_size(body->recipe) - offset);
	for (size_t have = 0; have < len;) {
		const ptrdiff_t got = read_some(body, offset + have, proves,
			(struct piece_room){into + have, len - have}, err);
		if (got < 0)
			return -1;
		have += (size_t)got;
	}
	return 0;
}

/* The same out of the piece in which byte `offset` lies. */
static ptrdiff_t read_some(struct derived_body *body, uint64_t offset, bool proves,
	struct piece_room room, struct error *err)
{
	const size_t index = derived_recipe_find(body->recipe, offset);
	ASSERT(index < body->recipe->piece_count && room.capacity > 0);
	const struct derived_piece *const piece = &body->recipe->pieces[index];
	const uint64_t within = offset - derived_recipe_start(body->recipe, index);
	const uint64_t left = piece->end - offset;
	const size_t len = left < room.capacity ? (size_t)left : room.capacity;
	if (piece->kind == DERIVED_DELTA)
		return read_delta(
			body, index, offset, proves, (struct piece_room){room.into, len}, err);
	if (piece->kind == DERIVED_LITERAL) {
		memcpy(room.into, body->recipe->literals.data + piece->offset + within, len);
		return (ptrdiff_t)len;
	}
	ASSERT(body->inputs[piece->source] != NULL);
	return (proves ? derived_input_read : derived_input_read_base)(body->inputs[piece->source],
		       piece->offset + within, room.into, len, err) != 0
		? -1
		: (ptrdiff_t)len;
}

/* Reads up to `capacity` bytes from `offset` on out of the delta piece `index`. Returns how many it
 * read, or -1. */
static ptrdiff_t read_delta(struct derived_body *body, size_t index, uint64_t offset, bool proves,
	struct piece_room room, struct error *err)
{
	const uint64_t within = offset - derived_recipe_start(body->recipe, index);
	if (!block_holds(body, offset)) {
		struct block_code_facts facts;
		if (walk_to(body, index, offset, &facts, err) != 0)
			return -1;
		/* the whole block fits where it is wanted */
		if (within == body->made && facts.result_bytes <= room.capacity)
			return make_block(body, &facts, proves, room.into, err) != 0
				? -1
				: (ptrdiff_t)facts.result_bytes;
		if (keep_block(body, &facts, err) != 0)
			return -1;
	}
	const size_t skipped = (size_t)(offset - body->block_start);
	const size_t left = body->block_len - skipped;
	const size_t len = left < room.capacity ? left : room.capacity;
	memcpy(room.into, body->block.data + skipped, len);
	return (ptrdiff_t)len;
}

static bool block_holds(const struct derived_body *body, uint64_t offset)
{
	return body->has_block && offset >= body->block_start &&
		offset - body->block_start < body->block_len;
}

/* Walks to the block that makes byte `offset` of the result, which lies in piece `index`. */
static int walk_to(struct derived_body *body, size_t index, uint64_t offset,
	struct block_code_facts *facts, struct error *err)
{
	const struct derived_piece *const piece = &body->recipe->pieces[index];
	const uint64_t within = offset - derived_recipe_start(body->recipe, index);
	const uint64_t length = derived_piece_length(body->recipe, index);
	if (!body->is_walking || body->piece != index || within < body->made) {
		body->is_walking = true;
		body->piece = index;
		body->made = 0;
		body->walked = 0;
		buffer_reset(&body->ahead);
	}
	for (;;) {
		ASSERT(within >= body->made);
		if (parse_block(body, piece, length, facts, err) != 0)
			return -1;
		if (within < body->made + facts->result_bytes)
			return 0;
		pass_block(body, facts);
	}
}

/* Parses the header of the next block. */
static int parse_block(struct derived_body *body, const struct derived_piece *piece,
	uint64_t length, struct block_code_facts *out, struct error *err)
{
	struct error why = {0};
	const uint64_t whole = block_code_bytes(piece->dtype);
	const uint64_t left = length - body->made;
	if (look_ahead(body, piece, BLOCK_CODE_HEADER_MAX, err) != 0)
		return -1;
	if (block_code_parse(buffer_span(&body->ahead), piece->dtype, left < whole ? left : whole,
		    out, &why) != 0)
		return block_is_bad(body, why.text, err);
	const uint64_t bytes = piece->delta_length - body->walked;
	if (out->header_bytes > bytes || out->payload_bytes > bytes - out->header_bytes)
		return block_is_bad(body, "its bytes end too early.", err);
	return 0;
}

/* Reads until `ahead` has at least `len` bytes, or all that the piece has left. */
static int look_ahead(struct derived_body *body, const struct derived_piece *piece, uint64_t len,
	struct error *err)
{
	const uint64_t left = piece->delta_length - body->walked;
	const uint64_t wanted = len < left ? len : left;
	if (wanted <= body->ahead.len)
		return 0;
	const size_t more = (size_t)(wanted - body->ahead.len);
	uint8_t *const into = buffer_reserve(&body->ahead, more);
	if (into == NULL)
		return block_is_too_large(err);
	if (derived_input_read(body->inputs[piece->delta],
		    piece->delta_offset + body->walked + body->ahead.len, into, more, err) != 0)
		return -1;
	buffer_commit(&body->ahead, more);
	return 0;
}

static int block_is_too_large(struct error *err)
{
	return error_set(
		err, ERROR_CORRUPT, "A block of a derived object is larger than a block may be.");
}

static int block_is_bad(const struct derived_body *body, const char *why, struct error *err)
{
	const uint64_t start = derived_recipe_start(body->recipe, body->piece) + body->made;
	return error_set(err, ERROR_CORRUPT,
		"The block of a derived object at byte %llu cannot be made: %s",
		(unsigned long long)start, why);
}

static void pass_block(struct derived_body *body, const struct block_code_facts *facts)
{
	const uint64_t bytes = facts->header_bytes + facts->payload_bytes;
	ASSERT(bytes <= body->recipe->pieces[body->piece].delta_length - body->walked);
	buffer_remove_front(
		&body->ahead, bytes < body->ahead.len ? (size_t)bytes : body->ahead.len);
	body->walked += bytes;
	body->made += facts->result_bytes;
}

/* Decodes the block at which the walk stands, and passes it. */
static int make_block(struct derived_body *body, const struct block_code_facts *facts, bool proves,
	uint8_t *into, struct error *err)
{
	const struct derived_piece *const piece = &body->recipe->pieces[body->piece];
	if (decode_block(body, piece, facts, proves, into, err) != 0)
		return -1;
	pass_block(body, facts);
	if (body->made == derived_piece_length(body->recipe, body->piece) &&
		body->walked != piece->delta_length)
		return block_is_bad(body, "bytes follow the last block.", err);
	return 0;
}

/* Decodes a block in the place of its base: memory that was touched a moment ago is fast. */
static int decode_block(struct derived_body *body, const struct derived_piece *piece,
	const struct block_code_facts *facts, bool proves, uint8_t *into, struct error *err)
{
	struct error why = {0};
	const size_t bytes = facts->header_bytes + (size_t)facts->payload_bytes;
	const size_t len = (size_t)facts->result_bytes;
	if (look_ahead(body, piece, bytes, err) != 0 ||
		derived_input_read_base(body->inputs[piece->source], piece->offset + body->made,
			into, len, err) != 0)
		return -1;
	if (body->context == NULL)
		body->context = block_code_context_new();
	const struct span block = span_slice(buffer_span(&body->ahead), 0, bytes);
	if ((proves ? block_code_decode : block_code_decode_unproven)(
		    body->context, piece->dtype, block, span_of(into, len), into, &why) != 0)
		return block_is_bad(body, why.text, err);
	return 0;
}

/* Decodes the block at which the walk stands into `block`. */
static int keep_block(
	struct derived_body *body, const struct block_code_facts *facts, struct error *err)
{
	const uint64_t start = derived_recipe_start(body->recipe, body->piece) + body->made;
	const size_t len = (size_t)facts->result_bytes;
	body->has_block = false;
	buffer_reset(&body->block);
	uint8_t *const into = buffer_reserve(&body->block, len);
	if (into == NULL)
		return block_is_too_large(err);
	if (make_block(body, facts, true, into, err) != 0)
		return -1;
	body->block_start = start;
	body->block_len = len;
	body->has_block = true;
	return 0;
}

/* Bytes that were made before a failure are right and go out; the next call returns the failure. A
 * wait must begin before there are bytes, so a call that may wait reads one piece. */
static ptrdiff_t derived_stream_read(
	struct body_source *source, uint8_t *into, size_t capacity, struct error *err)
{
	struct derived_stream *const stream = (struct derived_stream *)source;
	size_t used = 0;
	while (!stream->failed && used < capacity && stream->at < stream->to) {
		const uint64_t left = stream->to - stream->at;
		const size_t room = left < capacity - used ? (size_t)left : capacity - used;
		const ptrdiff_t got = read_some(stream->body, stream->at, true,
			(struct piece_room){into + used, room}, &stream->error);
		if (got < 0 && stream->may_wait && stream->error.kind == ERROR_NOT_READY)
			return SOURCE_WAIT;
		stream->failed = got < 0;
		if (stream->failed)
			break;
		used += (size_t)got;
		stream->at += (uint64_t)got;
		if (stream->may_wait)
			break;
	}
	if (used > 0 || !stream->failed)
		return (ptrdiff_t)used;
	*err = stream->error;
	return -1;
}

static void derived_stream_let_wait(struct body_source *source, source_wake_fn *wake, void *owner)
{
	struct derived_stream *const stream = (struct derived_stream *)source;
	stream->may_wait = true;
	derived_body_let_wait(stream->body, wake, owner);
}

static void derived_stream_close(struct body_source *source)
{
	derived_body_close(((struct derived_stream *)source)->body);
	free(source);
}
