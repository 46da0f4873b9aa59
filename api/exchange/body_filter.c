/* Counts and hashes bytes only after the inner sink took them, because the transport sends the same
 * bytes again after SINK_WAIT. Length and digest of the framed body are checked here; the length of
 * the content inside an aws-chunked framing is checked by aws_chunked.c. */
#include "api/exchange/body_filter.h"

#include <string.h>

#include "api/exchange/aws_chunked.h"
#include "api/exchange/payload.h"
#include "base/digest/digest.h"
#include "base/encode.h"

struct body_filter {
	struct body_sink sink;
	struct exchange *exchange;
	struct body_sink *inner;
	struct sha256_stream *sha256; /* NULL when the body is not signed */
	uint64_t received;
};

static enum sink_result body_filter_write(
	struct body_sink *sink, struct span bytes, struct error *err);
static uint64_t wire_most_bytes(const struct exchange *exchange);
static int body_filter_finish(struct body_sink *sink, struct error *err);
static int check_whole(struct body_filter *filter, struct error *err);
static void forget_sha256(struct body_filter *filter);
static void body_filter_abort(struct body_sink *sink);

struct body_sink *body_filter_new(struct exchange *exchange, struct body_sink *inner)
{
	struct body_filter *const filter = arena_take(exchange->arena, sizeof(*filter));
	/* The arena has room when a body begins, because headers are capped far below its size. */
	ASSERT(filter != NULL);
	filter->sink = (struct body_sink){body_filter_write, body_filter_finish, body_filter_abort};
	filter->exchange = exchange;
	filter->inner = payload_is_chunked(exchange) ? aws_chunked_new(exchange, inner) : inner;
	if (exchange->payload_rule == PAYLOAD_SHA256)
		filter->sha256 = sha256_stream_new();
	return &filter->sink;
}

static enum sink_result body_filter_write(
	struct body_sink *sink, struct span bytes, struct error *err)
{
	struct body_filter *const filter = (struct body_filter *)sink;
	const uint64_t most = wire_most_bytes(filter->exchange);
	ASSERT(filter->received <= most);
	if (bytes.len > most - filter->received) {
		error_set(err, ERROR_TOO_LARGE, "The body is larger than the limit of %llu bytes.",
			(unsigned long long)most);
		return SINK_FAILED;
	}
	const enum sink_result result = filter->inner->write(filter->inner, bytes, err);
	if (result != SINK_TAKEN)
		return result;
	filter->received += bytes.len;
	if (filter->sha256 != NULL)
		sha256_stream_add(filter->sha256, bytes);
	return SINK_TAKEN;
}

/* Limits the body as it is sent; aws_chunked.c limits the content inside a framing. */
static uint64_t wire_most_bytes(const struct exchange *exchange)
{
	const uint64_t cap =
		payload_is_chunked(exchange) ? UINT64_MAX : exchange->context->put_max_bytes;
	return exchange->has_length && exchange->length < cap ? exchange->length : cap;
}

static int body_filter_finish(struct body_sink *sink, struct error *err)
{
	struct body_filter *const filter = (struct body_filter *)sink;
	const int outcome = check_whole(filter, err);
	if (outcome != 0)
		return outcome; /* body_filter_abort follows and frees the rest */
	const int finished = filter->inner->finish(filter->inner, err);
	if (finished == 0)
		forget_sha256(filter);
	return finished;
}

static int check_whole(struct body_filter *filter, struct error *err)
{
	struct exchange *const exchange = filter->exchange;
	if (exchange->has_length && filter->received != exchange->length)
		return error_set(err, ERROR_INCOMPLETE_BODY,
			"The body ended after %llu bytes, but its Content-Length is %llu.",
			(unsigned long long)filter->received, (unsigned long long)exchange->length);
	if (filter->sha256 == NULL)
		return 0;
	uint8_t actual[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];
	sha256_stream_result(filter->sha256, actual);
	if (memcmp(actual, exchange->payload_sha256, sizeof(actual)) == 0)
		return 0;
	encode_hex(span_of(exchange->payload_sha256, sizeof(actual)), hex);
	exchange_error_field(exchange, "ClientComputedContentSHA256", span_text(hex));
	encode_hex(span_of(actual, sizeof(actual)), hex);
	exchange_error_field(exchange, "S3ComputedContentSHA256", span_text(hex));
	return error_set(err, ERROR_SHA256_MISMATCH,
		"The SHA-256 of the body differs from the one in x-amz-content-sha256.");
}

static void forget_sha256(struct body_filter *filter)
{
	if (filter->sha256 != NULL)
		sha256_stream_free(filter->sha256);
	filter->sha256 = NULL;
}

static void body_filter_abort(struct body_sink *sink)
{
	struct body_filter *const filter = (struct body_filter *)sink;
	forget_sha256(filter);
	filter->inner->abort(filter->inner);
}
