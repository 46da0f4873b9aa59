/* A push goes through the bytes record by record. A record that lies whole in them is taken there.
 * Otherwise its 8 bytes of header are gathered in `front`, checked, and then the whole record is
 * gathered at `into`. Bytes that begin with the footer's mark end the records: the footer is
 * written again from the records, and the bytes that follow must equal it. All limits are checked
 * on the header of a record, before memory is reserved for it. */
#include "chunker/xorb_parse.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "chunker/codec.h"
#include "chunker/merkle.h"
#include "chunker/xorb_footer.h"

struct xorb_parse {
	xorb_take_fn *take;
	xorb_room_fn *room;
	void *taker;
	bool private_codecs;
	struct codec_context *codec; /* NULL until a record is compressed */
	uint8_t *content;            /* the same; CHUNK_MAX_BYTES */
	/* a record that comes in pieces */
	struct xorb_record_header header;
	uint8_t front[XORB_RECORD_HEADER_BYTES]; /* the header while it is gathered */
	uint8_t *into;   /* memory for the whole record; NULL until the header is whole */
	size_t gathered; /* bytes of the record that came */
	struct buffer own_room;
	struct xorb_footer_chunk *chunks;
	uint32_t count;
	size_t capacity;
	uint64_t content_bytes;
	uint64_t at;          /* bytes of whole records */
	struct buffer footer; /* the expected footer; empty until the footer begins */
	size_t footer_at;     /* bytes of the footer that came */
	size_t reserved_at;
};

static int take_some(struct xorb_parse *parse, struct span *rest, struct error *err);
static bool gather(struct xorb_parse *parse, struct span *rest, uint8_t *into, size_t wanted);
static int take_gathered(struct xorb_parse *parse, struct error *err);
static int take_record(struct xorb_parse *parse, const struct xorb_record_header *header,
	const uint8_t *bytes, struct error *err);
static int decode(struct xorb_parse *parse, const struct xorb_record_header *header,
	struct xorb_record *record, struct error *err);
static int name_record(const struct xorb_parse *parse, struct error *err);
static void note_chunk(struct xorb_parse *parse, const struct chunk_id *id,
	const struct xorb_record_header *header);
static int begin(struct xorb_parse *parse, const uint8_t front[XORB_RECORD_HEADER_BYTES],
	struct span *rest, struct error *err);
static int begin_footer(
	struct xorb_parse *parse, const uint8_t mark[XORB_FOOTER_MARK_BYTES], struct error *err);
static struct chunk_id xorb_hash(const struct xorb_parse *parse);
static int take_footer(struct xorb_parse *parse, struct span bytes, struct error *err);
static int check_header(const struct xorb_parse *parse,
	const uint8_t bytes[XORB_RECORD_HEADER_BYTES], struct xorb_record_header *out,
	struct error *err);
static bool codec_is_welcome(const struct xorb_parse *parse, uint8_t codec);
static int begin_gathering(struct xorb_parse *parse, struct error *err);

struct xorb_parse *xorb_parse_new(xorb_take_fn *take, void *taker, bool private_codecs)
{
	ASSERT(take != NULL);
	struct xorb_parse *const parse = memory_new(sizeof(*parse));
	parse->take = take;
	parse->taker = taker;
	parse->private_codecs = private_codecs;
	buffer_init(&parse->own_room, XORB_RECORD_HEADER_BYTES + XORB_STORED_MAX_BYTES);
	buffer_init(&parse->footer, XORB_FOOTER_MAX_BYTES);
	return parse;
}

void xorb_parse_gather_into(struct xorb_parse *parse, xorb_room_fn *room)
{
	ASSERT(parse->at == 0 && parse->gathered == 0);
	parse->room = room;
}

void xorb_parse_free(struct xorb_parse *parse)
{
	if (parse == NULL)
		return;
	codec_context_free(parse->codec);
	free(parse->content);
	free(parse->chunks);
	buffer_release(&parse->own_room);
	buffer_release(&parse->footer);
	free(parse);
}

int xorb_parse_push(struct xorb_parse *parse, struct span bytes, struct error *err)
{
	struct span rest = bytes;
	while (rest.len > 0 && parse->footer.len == 0)
		if (take_some(parse, &rest, err) != 0)
			return -1;
	return rest.len == 0 ? 0 : take_footer(parse, rest, err);
}

int xorb_parse_end(struct xorb_parse *parse, struct chunk_id *out_hash, struct error *err)
{
	if (parse->gathered > 0 || parse->into != NULL)
		return error_set(err, ERROR_INVALID,
			"The xorb ends within record %u, after byte %llu.", parse->count,
			(unsigned long long)parse->at + parse->gathered);
	if (parse->count == 0)
		return error_set(err, ERROR_INVALID, "The xorb has no records.");
	if (parse->footer_at < parse->footer.len)
		return error_set(err, ERROR_INVALID,
			"The xorb ends within its footer, after %zu bytes of it.",
			parse->footer_at);
	*out_hash = xorb_hash(parse);
	return 0;
}

int xorb_parse_end_as(struct xorb_parse *parse, const struct chunk_id *hash, struct error *err)
{
	struct chunk_id actual;
	char expected_text[CHUNK_ID_TEXT_BYTES], actual_text[CHUNK_ID_TEXT_BYTES];
	if (xorb_parse_end(parse, &actual, err) != 0)
		return -1;
	if (chunk_id_equal(&actual, hash))
		return 0;
	chunk_id_format(hash, expected_text);
	chunk_id_format(&actual, actual_text);
	return error_set(err, ERROR_INVALID, "The bytes are the xorb %s, not %s.", actual_text,
		expected_text);
}

/* Takes a record or a part of one from `rest`. */
static int take_some(struct xorb_parse *parse, struct span *rest, struct error *err)
{
	if (parse->into != NULL)
		return gather(parse, rest, parse->into,
			       XORB_RECORD_HEADER_BYTES + parse->header.stored)
			? take_gathered(parse, err)
			: 0;
	if (parse->gathered == 0 && rest->len >= XORB_RECORD_HEADER_BYTES)
		return begin(parse, rest->data, rest, err);
	return gather(parse, rest, parse->front, XORB_RECORD_HEADER_BYTES)
		? begin(parse, parse->front, rest, err)
		: 0;
}

/* Moves bytes from `rest` behind those at `into`. False while fewer than `wanted` are there. */
static bool gather(struct xorb_parse *parse, struct span *rest, uint8_t *into, size_t wanted)
{
	ASSERT(parse->gathered <= wanted);
	const struct span piece = span_slice(*rest, 0, wanted - parse->gathered);
	if (piece.len > 0)
		memcpy(into + parse->gathered, piece.data, piece.len);
	parse->gathered += piece.len;
	*rest = span_slice(*rest, piece.len, rest->len);
	return parse->gathered == wanted;
}

static int take_gathered(struct xorb_parse *parse, struct error *err)
{
	const int result = take_record(parse, &parse->header, parse->into, err);
	parse->into = NULL;
	parse->gathered = 0;
	return result;
}

/* Takes a whole record. Its header was checked. */
static int take_record(struct xorb_parse *parse, const struct xorb_record_header *header,
	const uint8_t *bytes, struct error *err)
{
	struct xorb_record record = {.codec = header->codec,
		.payload = span_of(bytes + XORB_RECORD_HEADER_BYTES, header->stored)};
	if (decode(parse, header, &record, err) != 0)
		return name_record(parse, err);
	record.id = chunk_hash(record.content);
	if (parse->take(parse->taker, &record, err) != 0)
		return -1;
	note_chunk(parse, &record.id, header);
	return 0;
}

static int decode(struct xorb_parse *parse, const struct xorb_record_header *header,
	struct xorb_record *record, struct error *err)
{
	record->content = record->payload;
	if (header->codec == CODEC_RAW)
		return 0;
	if (parse->codec == NULL) {
		parse->codec = codec_context_new();
		parse->content = memory_new(CHUNK_MAX_BYTES);
	}
	if (codec_decode(parse->codec, (enum codec)header->codec, record->payload, parse->content,
		    header->size, err) != 0) {
		err->kind = ERROR_INVALID; /* "corrupt" is for bytes on our own disk */
		return -1;
	}
	record->content = span_of(parse->content, header->size);
	record->is_recoded = !codec_is_common((enum codec)header->codec, record->payload);
	if (record->is_recoded) {
		record->codec = CODEC_RAW;
		record->payload = record->content;
	}
	return 0;
}

static int name_record(const struct xorb_parse *parse, struct error *err)
{
	return error_wrap(err, "Record %u of the xorb, at byte %llu", parse->count,
		(unsigned long long)parse->at);
}

static void note_chunk(struct xorb_parse *parse, const struct chunk_id *id,
	const struct xorb_record_header *header)
{
	ASSERT(parse->count < XORB_MAX_CHUNKS); /* check_header refuses more */
	parse->chunks = memory_make_room(
		parse->chunks, parse->count, &parse->capacity, sizeof(*parse->chunks));
	parse->at += XORB_RECORD_HEADER_BYTES + header->stored;
	parse->content_bytes += header->size;
	parse->chunks[parse->count++] = (struct xorb_footer_chunk){
		.chunk = {.id = *id, .size = header->size},
		.record_end = (uint32_t)parse->at,
	};
}

/* Begins the footer, takes a record that lies whole in `rest`, or begins to gather one. */
static int begin(struct xorb_parse *parse, const uint8_t front[XORB_RECORD_HEADER_BYTES],
	struct span *rest, struct error *err)
{
	if (xorb_footer_begins(front)) {
		const int begun = begin_footer(parse, front, err);
		const struct span came = span_of(parse->front, parse->gathered);
		parse->gathered = 0;
		return begun != 0 ? -1 : take_footer(parse, came, err);
	}
	if (check_header(parse, front, &parse->header, err) != 0)
		return name_record(parse, err);
	const size_t whole = XORB_RECORD_HEADER_BYTES + parse->header.stored;
	if (parse->gathered > 0 || rest->len < whole)
		return begin_gathering(parse, err);
	*rest = span_slice(*rest, whole, rest->len);
	return take_record(parse, &parse->header, front, err);
}

static int begin_footer(
	struct xorb_parse *parse, const uint8_t mark[XORB_FOOTER_MARK_BYTES], struct error *err)
{
	const uint8_t version = mark[XORB_FOOTER_MARK_BYTES - 1];
	if (parse->count == 0)
		return error_set(err, ERROR_INVALID, "The xorb has a footer and no records.");
	if (version > XORB_FOOTER_VERSION_MAX)
		return error_set(err, ERROR_INVALID,
			"The xorb's footer has version %u, which is unknown.", version);
	const struct chunk_id hash = xorb_hash(parse);
	xorb_footer_write(
		version, &hash, parse->chunks, parse->count, &parse->footer, &parse->reserved_at);
	return buffer_check(&parse->footer, "the footer of a xorb", err);
}

static struct chunk_id xorb_hash(const struct xorb_parse *parse)
{
	struct merkle merkle;
	merkle_init(&merkle);
	for (uint32_t i = 0; i < parse->count; i++)
		merkle_add(&merkle, &parse->chunks[i].chunk);
	return merkle_root(&merkle);
}

/* The bytes must continue the expected footer; reserved bytes may have any value. */
static int take_footer(struct xorb_parse *parse, struct span bytes, struct error *err)
{
	ASSERT(parse->footer_at <= parse->footer.len);
	if (bytes.len > parse->footer.len - parse->footer_at)
		return error_set(err, ERROR_INVALID, "Bytes follow the xorb's footer.");
	for (size_t i = 0; i < bytes.len; i++) {
		const size_t at = parse->footer_at + i;
		const bool is_reserved = at >= parse->reserved_at &&
			at < parse->reserved_at + XORB_FOOTER_RESERVED_BYTES;
		if (!is_reserved && bytes.data[i] != parse->footer.data[at])
			return error_set(err, ERROR_INVALID,
				"The xorb's footer differs from its %u records, at byte %zu of the footer.",
				parse->count, at);
	}
	parse->footer_at += bytes.len;
	return 0;
}

static int check_header(const struct xorb_parse *parse,
	const uint8_t bytes[XORB_RECORD_HEADER_BYTES], struct xorb_record_header *out,
	struct error *err)
{
	if (!xorb_record_get_header(bytes, out))
		return error_set(err, ERROR_INVALID, "its version is %u, not 0.", bytes[0]);
	if (!codec_is_welcome(parse, out->codec))
		return error_set(
			err, ERROR_INVALID, "its compression scheme %u is unknown.", out->codec);
	if (out->size < 1 || out->size > CHUNK_MAX_BYTES)
		return error_set(err, ERROR_INVALID, "a chunk has 1 to %d bytes, not %u.",
			CHUNK_MAX_BYTES, out->size);
	if (out->stored < 1 || out->stored > XORB_STORED_MAX_BYTES)
		return error_set(err, ERROR_INVALID, "a stored chunk has 1 to %d bytes, not %u.",
			XORB_STORED_MAX_BYTES, out->stored);
	if (out->codec == CODEC_RAW && out->stored != out->size)
		return error_set(err, ERROR_INVALID,
			"%u bytes that are not compressed cannot be a chunk of %u.", out->stored,
			out->size);
	if (parse->count == XORB_MAX_CHUNKS)
		return error_set(
			err, ERROR_INVALID, "a xorb has at most %d chunks.", XORB_MAX_CHUNKS);
	if (parse->content_bytes + out->size > XORB_MAX_BYTES)
		return error_set(err, ERROR_INVALID, "a xorb has at most %d bytes of content.",
			XORB_MAX_BYTES);
	if (parse->at + XORB_RECORD_HEADER_BYTES + out->stored > XORB_BODY_MAX_BYTES)
		return error_set(err, ERROR_INVALID, "a serialized xorb has at most %d bytes.",
			XORB_BODY_MAX_BYTES);
	return 0;
}

static bool codec_is_welcome(const struct xorb_parse *parse, uint8_t codec)
{
	return codec_known(codec) && (parse->private_codecs || !codec_private(codec));
}

static int begin_gathering(struct xorb_parse *parse, struct error *err)
{
	ASSERT(parse->into == NULL);
	const size_t whole = XORB_RECORD_HEADER_BYTES + parse->header.stored;
	parse->into = parse->room != NULL ? parse->room(parse->taker, whole, err)
					  : buffer_reserve(&parse->own_room, whole);
	if (parse->into == NULL)
		return -1;
	memcpy(parse->into, parse->front, parse->gathered);
	return 0;
}
