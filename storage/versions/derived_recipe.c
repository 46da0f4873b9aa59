/* Builders have no error path: a piece that is not within its sources is left out and noted in
 * is_unsound, and functions that take the recipe refuse it. A copy that continues the last one
 * makes it longer, so that recipes stay short. Parsing adds pieces by the same function, so that a
 * recipe from the catalog keeps the same rules. */
#include "storage/versions/derived_recipe.h"

#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "base/memory.h"
#include "base/search.h"
#include "weights/codec/block_code.h"

enum { RECIPE_VERSION = 1, HEAD_BYTES = 24, SOURCE_BYTES = 16, PIECE_BYTES = 40, BITS_OF_BYTE = 8 };

static bool derived_recipe_ends_before(const void *piece, const void *offset);
static bool is_sound(
	const struct derived_recipe *recipe, const struct derived_piece *piece, uint64_t length);
static bool lies_in(
	const struct derived_recipe *recipe, size_t source, uint64_t offset, uint64_t length);
static bool has_whole_elements(enum dtype dtype, uint64_t length);
static void add_piece(struct derived_recipe *recipe, struct derived_piece piece, uint64_t length);
static int measure_blocks(enum dtype dtype, struct span blocks, uint64_t *io_length,
	size_t *out_bytes, struct error *err);
static void put_piece(const struct derived_piece *piece, uint8_t out[PIECE_BYTES]);
static bool parse_into(struct derived_recipe *recipe, struct span bytes);
static bool parse_piece(struct derived_recipe *recipe, const uint8_t *from);

struct derived_recipe *derived_recipe_new(void)
{
	struct derived_recipe *const recipe = memory_new(sizeof(*recipe));
	buffer_init(&recipe->literals, DERIVED_RECIPE_MAX_BYTES);
	return recipe;
}

void derived_recipe_free(struct derived_recipe *recipe)
{
	if (recipe == NULL)
		return;
	buffer_release(&recipe->literals);
	free(recipe->sources);
	free(recipe->pieces);
	free(recipe);
}

size_t derived_recipe_source(struct derived_recipe *recipe, int64_t version, uint64_t size)
{
	for (size_t i = 0; i < recipe->source_count; i++)
		if (recipe->sources[i].version == version)
			return i;
	recipe->sources = memory_make_room(recipe->sources, recipe->source_count,
		&recipe->source_capacity, sizeof(*recipe->sources));
	recipe->sources[recipe->source_count] = (struct derived_source){version, size};
	return recipe->source_count++;
}

uint64_t derived_recipe_size(const struct derived_recipe *recipe)
{
	return recipe->piece_count == 0 ? 0 : recipe->pieces[recipe->piece_count - 1].end;
}

uint64_t derived_recipe_start(const struct derived_recipe *recipe, size_t piece)
{
	ASSERT(piece <= recipe->piece_count);
	return piece == 0 ? 0 : recipe->pieces[piece - 1].end;
}

uint64_t derived_piece_length(const struct derived_recipe *recipe, size_t piece)
{
	ASSERT(piece < recipe->piece_count);
	return recipe->pieces[piece].end - derived_recipe_start(recipe, piece);
}

size_t derived_recipe_find(const struct derived_recipe *recipe, uint64_t offset)
{
	return search_lower_bound(recipe->pieces, recipe->piece_count, sizeof(*recipe->pieces),
		derived_recipe_ends_before, &offset);
}

void derived_recipe_settle(
	struct derived_recipe *recipe, size_t source, int64_t version, uint64_t size)
{
	ASSERT(source < recipe->source_count);
	recipe->sources[source] = (struct derived_source){version, size};
	for (size_t i = 0; i < recipe->piece_count; i++)
		recipe->is_unsound |=
			!is_sound(recipe, &recipe->pieces[i], derived_piece_length(recipe, i));
}

void derived_recipe_add_literal(struct derived_recipe *recipe, struct span bytes)
{
	const struct derived_piece piece = {
		.kind = DERIVED_LITERAL, .offset = recipe->literals.len};
	buffer_add_span(&recipe->literals, bytes);
	add_piece(recipe, piece, bytes.len);
}

void derived_recipe_add_copy(
	struct derived_recipe *recipe, size_t source, uint64_t offset, uint64_t length)
{
	struct derived_piece *const last =
		recipe->piece_count == 0 ? NULL : &recipe->pieces[recipe->piece_count - 1];
	const uint64_t before =
		last == NULL ? 0 : derived_piece_length(recipe, recipe->piece_count - 1);
	if (last != NULL && last->kind == DERIVED_COPY && last->source == source &&
		last->offset + before == offset && lies_in(recipe, source, offset, length))
		last->end += length; /* it continues the last copy */
	else
		add_piece(recipe,
			(struct derived_piece){
				.kind = DERIVED_COPY, .source = (uint16_t)source, .offset = offset},
			length);
}

void derived_recipe_add_delta(struct derived_recipe *recipe, enum dtype dtype,
	const struct derived_range *base, const struct derived_range *delta)
{
	add_piece(recipe,
		(struct derived_piece){.kind = DERIVED_DELTA,
			.dtype = dtype,
			.source = (uint16_t)base->source,
			.offset = base->offset,
			.delta = (uint16_t)delta->source,
			.delta_offset = delta->offset,
			.delta_length = delta->length},
		base->length);
}

int derived_recipe_add_blocks(struct derived_recipe *recipe, enum dtype dtype,
	const struct derived_range *base, const struct derived_blocks *blocks, struct error *err)
{
	const struct span all = blocks->bytes;
	size_t used = 0;
	for (uint64_t made = 0; made < base->length;) {
		uint64_t part = base->length - made;
		size_t bytes = 0;
		if (measure_blocks(dtype, span_slice(all, used, all.len), &part, &bytes, err) != 0)
			return -1;
		derived_recipe_add_delta(recipe, dtype,
			&(const struct derived_range){.source = base->source,
				.offset = base->offset + made,
				.length = part},
			&(const struct derived_range){.source = blocks->source,
				.offset = blocks->offset + used,
				.length = bytes});
		made += part;
		used += bytes;
	}
	return used == all.len
		? 0
		: error_set(err, ERROR_INVALID, "Bytes follow a tensor's last block.");
}

int derived_recipe_encode(
	const struct derived_recipe *recipe, struct buffer *out, struct error *err)
{
	uint8_t head[HEAD_BYTES] = {RECIPE_VERSION};
	if (recipe->is_unsound)
		return error_set(
			err, ERROR_INVALID, "A piece of a recipe lies outside of its source.");
	if (recipe->source_count > DERIVED_SOURCES_MAX)
		return error_set(err, ERROR_TOO_LARGE,
			"A recipe names %zu sources; at most %d are allowed.", recipe->source_count,
			DERIVED_SOURCES_MAX);
	if (buffer_failed(&recipe->literals))
		return error_set(err, ERROR_TOO_LARGE, "A recipe has more than %d literal bytes.",
			DERIVED_RECIPE_MAX_BYTES);
	little_endian_put(head + 2, recipe->source_count, 2);
	little_endian_put(head + 4, recipe->piece_count, 4);
	little_endian_put(head + 8, derived_recipe_size(recipe), 8);
	little_endian_put(head + 16, recipe->literals.len, 8);
	buffer_add(out, head, sizeof(head));
	for (size_t i = 0; i < recipe->source_count; i++) {
		uint8_t source[SOURCE_BYTES];
		little_endian_put(source, (uint64_t)recipe->sources[i].version, 8);
		little_endian_put(source + 8, recipe->sources[i].size, 8);
		buffer_add(out, source, sizeof(source));
	}
	for (size_t i = 0; i < recipe->piece_count; i++) {
		uint8_t piece[PIECE_BYTES];
		put_piece(&recipe->pieces[i], piece);
		buffer_add(out, piece, sizeof(piece));
	}
	buffer_add_span(out, buffer_span(&recipe->literals));
	return buffer_check(out, "the recipe of a derived object", err);
}

struct derived_recipe *derived_recipe_parse(struct span bytes, struct error *err)
{
	struct derived_recipe *const recipe = derived_recipe_new();
	if (parse_into(recipe, bytes))
		return recipe;
	derived_recipe_free(recipe);
	error_set(err, ERROR_CORRUPT, "The recipe of a derived object is damaged.");
	return NULL;
}

static bool derived_recipe_ends_before(const void *piece, const void *offset)
{
	return ((const struct derived_piece *)piece)->end <= *(const uint64_t *)offset;
}

/* Whether the piece of this length lies in its sources. */
static bool is_sound(
	const struct derived_recipe *recipe, const struct derived_piece *piece, uint64_t length)
{
	if (piece->kind == DERIVED_LITERAL)
		return piece->offset <= recipe->literals.len &&
			length <= recipe->literals.len - piece->offset;
	if (!lies_in(recipe, piece->source, piece->offset, length))
		return false;
	return piece->kind == DERIVED_COPY ||
		(piece->delta_length > 0 && has_whole_elements(piece->dtype, length) &&
			lies_in(recipe, piece->delta, piece->delta_offset, piece->delta_length));
}

static bool lies_in(
	const struct derived_recipe *recipe, size_t source, uint64_t offset, uint64_t length)
{
	return source < recipe->source_count && offset <= recipe->sources[source].size &&
		length <= recipe->sources[source].size - offset;
}

static bool has_whole_elements(enum dtype dtype, uint64_t length)
{
	return dtype_bits(dtype) < BITS_OF_BYTE || length % (dtype_bits(dtype) / BITS_OF_BYTE) == 0;
}

static void add_piece(struct derived_recipe *recipe, struct derived_piece piece, uint64_t length)
{
	const uint64_t start = derived_recipe_size(recipe);
	if (length == 0)
		return;
	if (length > INT64_MAX - start || !is_sound(recipe, &piece, length)) {
		recipe->is_unsound = true;
		return;
	}
	recipe->pieces = memory_make_room(recipe->pieces, recipe->piece_count,
		&recipe->piece_capacity, sizeof(*recipe->pieces));
	piece.end = start + length;
	recipe->pieces[recipe->piece_count++] = piece;
}

/* Measures up to DERIVED_PIECE_BLOCKS blocks at the start of `blocks`. *io_length is what is left
 * of the result, and becomes what these blocks make of it. */
static int measure_blocks(enum dtype dtype, struct span blocks, uint64_t *io_length,
	size_t *out_bytes, struct error *err)
{
	const uint64_t whole = block_code_bytes(dtype);
	uint64_t made = 0;
	*out_bytes = 0;
	for (int i = 0; i < DERIVED_PIECE_BLOCKS && made < *io_length; i++) {
		const uint64_t expected = *io_length - made < whole ? *io_length - made : whole;
		const struct span rest = span_slice(blocks, *out_bytes, blocks.len);
		struct block_code_facts facts;
		if (block_code_parse(rest, dtype, expected, &facts, err) != 0)
			return -1;
		if (facts.header_bytes > rest.len ||
			facts.payload_bytes > rest.len - facts.header_bytes)
			return error_set(err, ERROR_INVALID, "A tensor's blocks end too early.");
		*out_bytes += facts.header_bytes + (size_t)facts.payload_bytes;
		made += expected;
	}
	*io_length = made;
	return 0;
}

static void put_piece(const struct derived_piece *piece, uint8_t out[PIECE_BYTES])
{
	little_endian_put(out, piece->end, 8);
	out[8] = (uint8_t)piece->kind;
	out[9] = (uint8_t)piece->dtype;
	little_endian_put(out + 10, piece->source, 2);
	little_endian_put(out + 12, piece->delta, 2);
	little_endian_put(out + 14, 0, 2);
	little_endian_put(out + 16, piece->offset, 8);
	little_endian_put(out + 24, piece->delta_offset, 8);
	little_endian_put(out + 32, piece->delta_length, 8);
}

static bool parse_into(struct derived_recipe *recipe, struct span bytes)
{
	if (bytes.len < HEAD_BYTES || bytes.data[0] != RECIPE_VERSION)
		return false;
	const size_t sources = (size_t)little_endian_get(bytes.data + 2, 2);
	const size_t pieces = (size_t)little_endian_get(bytes.data + 4, 4);
	const uint64_t literals = little_endian_get(bytes.data + 16, 8);
	const size_t fixed = HEAD_BYTES + sources * SOURCE_BYTES + pieces * PIECE_BYTES;
	if (sources > DERIVED_SOURCES_MAX || fixed > bytes.len || literals != bytes.len - fixed)
		return false;
	buffer_add_span(&recipe->literals, span_slice(bytes, fixed, bytes.len));
	const uint8_t *at = bytes.data + HEAD_BYTES;
	for (size_t i = 0; i < sources; i++, at += SOURCE_BYTES)
		if (derived_recipe_source(recipe, (int64_t)little_endian_get(at, 8),
			    little_endian_get(at + 8, 8)) != i)
			return false;
	for (size_t i = 0; i < pieces; i++, at += PIECE_BYTES)
		if (!parse_piece(recipe, at))
			return false;
	return !buffer_failed(&recipe->literals) &&
		derived_recipe_size(recipe) == little_endian_get(bytes.data + 8, 8);
}

/* Adds a piece as a builder does; false when it breaks a rule. */
static bool parse_piece(struct derived_recipe *recipe, const uint8_t *from)
{
	const uint64_t end = little_endian_get(from, 8);
	const uint64_t start = derived_recipe_size(recipe);
	const struct derived_piece piece = {
		.kind = (enum derived_piece_kind)from[8],
		.dtype = (enum dtype)from[9],
		.source = (uint16_t)little_endian_get(from + 10, 2),
		.delta = (uint16_t)little_endian_get(from + 12, 2),
		.offset = little_endian_get(from + 16, 8),
		.delta_offset = little_endian_get(from + 24, 8),
		.delta_length = little_endian_get(from + 32, 8),
	};
	if (from[8] >= DERIVED_PIECE_KINDS || from[9] >= DTYPE_COUNT || end <= start)
		return false;
	add_piece(recipe, piece, end - start);
	return !recipe->is_unsound;
}
