/* A state machine over the pieces as they arrive, with one step function for each state:
 *
 *   SIZE --chunk line--> DATA --> DATA_END --> SIZE ... --chunk line of size 0--> TRAILER --empty line--> END
 *
 * The inner sink may answer "wait" in the middle of a piece, after earlier bytes of the piece were
 * processed. The transport then sends the same bytes again, so `done` counts those that are
 * processed already. */
#include "api/exchange/aws_chunked.h"

#include <string.h>

#include "api/exchange/chunk_signature.h"
#include "api/exchange/payload.h"
#include "base/encode.h"
#include "base/memory.h"

enum state { STATE_SIZE, STATE_DATA, STATE_DATA_END, STATE_TRAILER, STATE_END, STATE_COUNT };
enum { TRAILER_MAX_BYTES = 4096 };

struct aws_chunked {
	struct body_sink sink;
	struct exchange *exchange;
	struct body_sink *inner;
	bool is_signed;
	bool signs_trailer;
	struct chunk_signature chain;
	/* of the current chunk; NULL when chunks are not signed */
	struct sha256_stream *sha256;
	enum state state;
	size_t done; /* bytes of the current piece that are processed */
	char line[AWS_CHUNKED_LINE_MAX_BYTES];
	size_t line_len;
	char given[SIGNATURE_V4_CHARACTERS]; /* the signature that came with the current chunk */
	uint64_t number;                     /* of the current chunk, from 1 */
	uint64_t size;                       /* bytes of the current chunk */
	uint64_t left;                       /* bytes of the current chunk that are still to come */
	uint64_t content_bytes;              /* received so far, without framing */
	size_t data_end_seen;                /* bytes of the CRLF after the data */
	struct buffer trailer_lines;         /* in the form that is signed */
	bool has_trailer;
	bool has_trailer_signature;
	bool has_gap; /* the empty line before the trailer's signature */
	struct checksum trailer;
};

static enum sink_result aws_chunked_write(
	struct body_sink *sink, struct span bytes, struct error *err);
static enum sink_result step_size(struct aws_chunked *chunked, struct span rest, struct error *err);
static int take_line(struct aws_chunked *chunked, struct span rest, struct error *err);
static int broken(struct error *err, const char *what);
static int parse_chunk_line(struct aws_chunked *chunked, struct span line, struct error *err);
static int parse_size(struct span digits, uint64_t *out);
static struct span end_line(struct aws_chunked *chunked);
static int check_size(struct aws_chunked *chunked, uint64_t size_before, struct error *err);
static uint64_t content_most_bytes(const struct exchange *exchange);
static int check_chunk_signature(struct aws_chunked *chunked, struct error *err);
static int refuse_signature(
	struct aws_chunked *chunked, struct span given, const char *what, struct error *err);
static enum sink_result step_data(struct aws_chunked *chunked, struct span rest, struct error *err);
static enum sink_result step_data_end(
	struct aws_chunked *chunked, struct span rest, struct error *err);
static enum sink_result step_trailer(
	struct aws_chunked *chunked, struct span rest, struct error *err);
static int take_end_line(struct aws_chunked *chunked, struct span line, struct error *err);
static int take_trailer_line(struct aws_chunked *chunked, struct span line, struct error *err);
static int malformed_trailer(struct error *err, const char *what);
static int take_trailer_signature(
	struct aws_chunked *chunked, struct span value, struct error *err);
static int take_trailer(
	struct aws_chunked *chunked, struct span name, struct span value, struct error *err);
static enum sink_result step_end(struct aws_chunked *chunked, struct span rest, struct error *err);
static int aws_chunked_finish(struct body_sink *sink, struct error *err);
static int check_end(struct aws_chunked *chunked, struct error *err);
static void forget(struct aws_chunked *chunked);
static void aws_chunked_abort(struct body_sink *sink);

struct body_sink *aws_chunked_new(struct exchange *exchange, struct body_sink *inner)
{
	struct aws_chunked *const chunked = arena_take(exchange->arena, sizeof(*chunked));
	/* The arena has room when a body begins, because headers are capped far below its size. */
	ASSERT(chunked != NULL);
	ASSERT(payload_is_chunked(exchange));
	chunked->sink =
		(struct body_sink){aws_chunked_write, aws_chunked_finish, aws_chunked_abort};
	chunked->exchange = exchange;
	chunked->inner = inner;
	chunked->is_signed = exchange->payload_rule != PAYLOAD_CHUNKED;
	chunked->signs_trailer = exchange->payload_rule == PAYLOAD_CHUNKED_SIGNED_TRAILER;
	buffer_init(&chunked->trailer_lines, TRAILER_MAX_BYTES);
	if (chunked->is_signed) {
		/* identify gives this rule only to requests that have a seed. */
		ASSERT(exchange->chunk_seed != NULL);
		chunked->chain = *exchange->chunk_seed;
		chunk_signature_wipe(exchange->chunk_seed);
		chunked->sha256 = sha256_stream_new();
	}
	return &chunked->sink;
}

static enum sink_result aws_chunked_write(
	struct body_sink *sink, struct span bytes, struct error *err)
{
	static enum sink_result (*const steps[STATE_COUNT])(struct aws_chunked * chunked,
		struct span rest, struct error * err) = {[STATE_SIZE] = step_size,
		[STATE_DATA] = step_data,
		[STATE_DATA_END] = step_data_end,
		[STATE_TRAILER] = step_trailer,
		[STATE_END] = step_end};
	struct aws_chunked *const chunked = (struct aws_chunked *)sink;
	while (chunked->done < bytes.len) {
		const enum sink_result result = steps[chunked->state](
			chunked, span_slice(bytes, chunked->done, bytes.len), err);
		if (result != SINK_TAKEN)
			return result;
	}
	chunked->done = 0;
	return SINK_TAKEN;
}

static enum sink_result step_size(struct aws_chunked *chunked, struct span rest, struct error *err)
{
	const uint64_t size_before = chunked->size;
	const int whole = take_line(chunked, rest, err);
	if (whole <= 0)
		return whole < 0 ? SINK_FAILED : SINK_TAKEN;
	if (parse_chunk_line(chunked, end_line(chunked), err) != 0 ||
		check_size(chunked, size_before, err) != 0)
		return SINK_FAILED;
	chunked->number++;
	chunked->left = chunked->size;
	chunked->state = chunked->size > 0 ? STATE_DATA : STATE_TRAILER;
	if (chunked->size == 0 && check_chunk_signature(chunked, err) != 0)
		return SINK_FAILED;
	return SINK_TAKEN;
}

/* Collects bytes up to the line feed. 1 when the line is complete (kept without the feed), 0 when
 * more must come, -1 on failure. */
static int take_line(struct aws_chunked *chunked, struct span rest, struct error *err)
{
	const ptrdiff_t feed = span_find(rest, '\n');
	const size_t len = feed < 0 ? rest.len : (size_t)feed;
	if (len > sizeof(chunked->line) - chunked->line_len)
		return broken(err, "a line is over 1024 bytes");
	memcpy(chunked->line + chunked->line_len, rest.data, len);
	chunked->line_len += len;
	chunked->done += len + (feed >= 0);
	return feed >= 0;
}

static int broken(struct error *err, const char *what)
{
	return error_set(err, ERROR_INCOMPLETE_BODY,
		"The aws-chunked framing of the body is damaged or incomplete: %s.", what);
}

/* "HEX" or "HEX;chunk-signature=SIG". Extensions of unsigned chunks are ignored. */
static int parse_chunk_line(struct aws_chunked *chunked, struct span line, struct error *err)
{
	const struct span name = span_text("chunk-signature=");
	if (line.len == 0 || line.data[line.len - 1] != '\r')
		return broken(err, "a chunk's line does not end with CRLF");
	line = span_slice(line, 0, line.len - 1);
	const ptrdiff_t semicolon = span_find(line, ';');
	const struct span digits =
		span_slice(line, 0, semicolon < 0 ? line.len : (size_t)semicolon);
	if (parse_size(digits, &chunked->size) != 0)
		return broken(err, "a chunk's size is not a hexadecimal number");
	if (!chunked->is_signed)
		return 0;
	const struct span extension = span_slice(line, digits.len + 1, line.len);
	if (!span_starts(extension, name) || extension.len != name.len + SIGNATURE_V4_CHARACTERS)
		return broken(err, "a chunk has no chunk-signature of 64 digits");
	memcpy(chunked->given, extension.data + name.len, SIGNATURE_V4_CHARACTERS);
	return 0;
}

static int parse_size(struct span digits, uint64_t *out)
{
	uint64_t size = 0;
	for (size_t i = 0; i < digits.len; i++) {
		const char c = (char)digits.data[i];
		const int digit = c >= '0' && c <= '9' ? c - '0'
			: c >= 'a' && c <= 'f'         ? c - 'a' + 10
			: c >= 'A' && c <= 'F'         ? c - 'A' + 10
						       : -1;
		if (digit < 0 || size >> 56 != 0)
			return -1;
		size = size << 4 | (uint64_t)digit;
	}
	*out = size;
	return digits.len > 0 ? 0 : -1;
}

/* The collected line, which stays valid until the next byte is collected. */
static struct span end_line(struct aws_chunked *chunked)
{
	const struct span line = span_of(chunked->line, chunked->line_len);
	chunked->line_len = 0;
	return line;
}

static int check_size(struct aws_chunked *chunked, uint64_t size_before, struct error *err)
{
	struct exchange *const exchange = chunked->exchange;
	ASSERT(chunked->content_bytes <= content_most_bytes(exchange));
	if (size_before > 0 && size_before < AWS_CHUNKED_CHUNK_LEAST_BYTES && chunked->size > 0) {
		exchange_error_number(exchange, "Chunk", chunked->number);
		exchange_error_number(exchange, "BadChunkSize", size_before);
		return error_set(err, ERROR_CHUNK_SIZE,
			"Only the last chunk is allowed to have a size less than %d bytes.",
			AWS_CHUNKED_CHUNK_LEAST_BYTES);
	}
	const uint64_t most = content_most_bytes(exchange);
	if (chunked->size > most - chunked->content_bytes)
		return exchange->has_body_length
			? broken(err,
				  "the chunks hold more bytes than x-amz-decoded-content-length says")
			: error_set(err, ERROR_TOO_LARGE,
				  "The body is larger than the limit of %llu bytes.",
				  (unsigned long long)most);
	if (chunked->size == 0 && exchange->has_body_length &&
		chunked->content_bytes != exchange->body_length)
		return broken(
			err, "the chunks hold fewer bytes than x-amz-decoded-content-length says");
	return 0;
}

static uint64_t content_most_bytes(const struct exchange *exchange)
{
	return exchange->has_body_length ? exchange->body_length : exchange->context->put_max_bytes;
}

static int check_chunk_signature(struct aws_chunked *chunked, struct error *err)
{
	uint8_t hash[SHA256_BYTES];
	const struct span given = span_of(chunked->given, sizeof(chunked->given));
	if (!chunked->is_signed)
		return 0;
	ASSERT(chunked->sha256 != NULL);
	sha256_stream_result(chunked->sha256, hash);
	return chunk_signature_check(&chunked->chain, hash, given)
		? 0
		: refuse_signature(chunked, given, "a chunk", err);
}

static int refuse_signature(
	struct aws_chunked *chunked, struct span given, const char *what, struct error *err)
{
	exchange_error_field(chunked->exchange, "AWSAccessKeyId", chunked->chain.key_id);
	exchange_error_field(chunked->exchange, "SignatureProvided", given);
	return error_set(err, ERROR_SIGNATURE,
		"The signature of %s is not the one that the secret of this key gives.", what);
}

static enum sink_result step_data(struct aws_chunked *chunked, struct span rest, struct error *err)
{
	ASSERT(chunked->left > 0);
	const struct span piece =
		span_slice(rest, 0, chunked->left < rest.len ? (size_t)chunked->left : rest.len);
	const enum sink_result result = chunked->inner->write(chunked->inner, piece, err);
	if (result != SINK_TAKEN)
		return result;
	if (chunked->is_signed)
		sha256_stream_add(chunked->sha256, piece);
	chunked->done += piece.len;
	chunked->left -= piece.len;
	chunked->content_bytes += piece.len;
	if (chunked->left > 0)
		return SINK_TAKEN;
	chunked->state = STATE_DATA_END;
	return check_chunk_signature(chunked, err) == 0 ? SINK_TAKEN : SINK_FAILED;
}

static enum sink_result step_data_end(
	struct aws_chunked *chunked, struct span rest, struct error *err)
{
	if (rest.data[0] != "\r\n"[chunked->data_end_seen]) {
		broken(err, "the bytes of a chunk are not followed by CRLF");
		return SINK_FAILED;
	}
	chunked->done++;
	chunked->data_end_seen = 1 - chunked->data_end_seen;
	if (chunked->data_end_seen == 0)
		chunked->state = STATE_SIZE;
	return SINK_TAKEN;
}

static enum sink_result step_trailer(
	struct aws_chunked *chunked, struct span rest, struct error *err)
{
	const int whole = take_line(chunked, rest, err);
	if (whole < 0)
		return SINK_FAILED;
	return whole == 0 || take_end_line(chunked, end_line(chunked), err) == 0 ? SINK_TAKEN
										 : SINK_FAILED;
}

/* A line after the last chunk: of the trailer, or the empty line that ends the body. */
static int take_end_line(struct aws_chunked *chunked, struct span line, struct error *err)
{
	if (line.len > 0 && line.data[line.len - 1] == '\r')
		line = span_slice(line, 0, line.len - 1);
	if (line.len > 0)
		return take_trailer_line(chunked, line, err);
	const bool is_gap = chunked->signs_trailer && chunked->has_trailer &&
		!chunked->has_trailer_signature && !chunked->has_gap;
	chunked->has_gap = chunked->has_gap || is_gap;
	if (!is_gap)
		chunked->state = STATE_END;
	return 0;
}

static int take_trailer_line(struct aws_chunked *chunked, struct span line, struct error *err)
{
	const ptrdiff_t colon = span_find(line, ':');
	if (colon <= 0)
		return malformed_trailer(err, "a line is not of the form name:value");
	const struct span name = span_slice(line, 0, (size_t)colon);
	const struct span value = span_trim(span_slice(line, (size_t)colon + 1, line.len));
	if (span_equal_nocase(name, "x-amz-trailer-signature"))
		return take_trailer_signature(chunked, value, err);
	buffer_add_span(&chunked->trailer_lines, name);
	buffer_add_byte(&chunked->trailer_lines, ':');
	buffer_add_span(&chunked->trailer_lines, value);
	buffer_add_byte(&chunked->trailer_lines, '\n');
	if (buffer_failed(&chunked->trailer_lines))
		return malformed_trailer(err, "it is too long");
	return take_trailer(chunked, name, value, err);
}

static int malformed_trailer(struct error *err, const char *what)
{
	return error_set(err, ERROR_MALFORMED_TRAILER,
		"The request contained trailing data that was not well-formed or did not conform to our "
		"published schema: %s.",
		what);
}

static int take_trailer_signature(struct aws_chunked *chunked, struct span value, struct error *err)
{
	if (!chunked->signs_trailer || chunked->has_trailer_signature)
		return malformed_trailer(err, "it has a signature that is not expected");
	chunked->has_trailer_signature = true;
	if (chunk_signature_check_trailer(
		    &chunked->chain, buffer_span(&chunked->trailer_lines), value))
		return 0;
	return refuse_signature(chunked, value, "the trailer", err);
}

static int take_trailer(
	struct aws_chunked *chunked, struct span name, struct span value, struct error *err)
{
	const enum checksum_algorithm announced = chunked->exchange->trailer_algorithm;
	if (announced == CHECKSUM_NONE || checksum_by_header(name) != announced)
		return malformed_trailer(err, "it is not the trailer that x-amz-trailer announced");
	if (chunked->has_trailer || chunked->has_trailer_signature)
		return malformed_trailer(err, "a trailer is repeated or follows its signature");
	if (!checksum_parse(announced, value, &chunked->trailer))
		return error_set(err, ERROR_INVALID_REQUEST,
			"Value for %s trailing header is invalid.", checksum_header(announced));
	chunked->has_trailer = true;
	return 0;
}

static enum sink_result step_end(struct aws_chunked *chunked, struct span rest, struct error *err)
{
	(void)chunked;
	(void)rest;
	broken(err, "bytes follow its end");
	return SINK_FAILED;
}

static int aws_chunked_finish(struct body_sink *sink, struct error *err)
{
	struct aws_chunked *const chunked = (struct aws_chunked *)sink;
	if (check_end(chunked, err) != 0)
		return -1; /* aws_chunked_abort follows and frees the rest */
	chunked->exchange->trailer = chunked->trailer;
	const int finished = chunked->inner->finish(chunked->inner, err);
	if (finished == 0)
		forget(chunked);
	return finished;
}

static int check_end(struct aws_chunked *chunked, struct error *err)
{
	if (chunked->state != STATE_TRAILER && chunked->state != STATE_END)
		return broken(err, "it ends before its last chunk");
	if (chunked->line_len > 0 && take_end_line(chunked, end_line(chunked), err) != 0)
		return -1;
	if (chunked->exchange->trailer_algorithm != CHECKSUM_NONE && !chunked->has_trailer)
		return malformed_trailer(
			err, "the trailer that x-amz-trailer announced is missing");
	if (chunked->signs_trailer && !chunked->has_trailer_signature)
		return malformed_trailer(err, "x-amz-trailer-signature is missing");
	return 0;
}

static void forget(struct aws_chunked *chunked)
{
	if (chunked->sha256 != NULL)
		sha256_stream_free(chunked->sha256);
	chunked->sha256 = NULL;
	buffer_release(&chunked->trailer_lines);
	chunk_signature_wipe(&chunked->chain);
}

static void aws_chunked_abort(struct body_sink *sink)
{
	struct aws_chunked *const chunked = (struct aws_chunked *)sink;
	forget(chunked);
	chunked->inner->abort(chunked->inner);
}
