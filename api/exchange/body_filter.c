/* Bytes are counted and hashed only after the inner sink took them: a SINK_WAIT brings the same
 * bytes again. */
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

static enum sink_result filter_write(struct body_sink *sink, struct span bytes, struct error *err);
static uint64_t most_bytes(const struct exchange *exchange);
static int filter_finish(struct body_sink *sink, struct error *err);
static int check_whole(struct body_filter *filter, struct error *err);
static void forget_sha256(struct body_filter *filter);
static void filter_abort(struct body_sink *sink);

struct body_sink *body_filter_new(struct exchange *exchange, struct body_sink *inner)
{
	struct body_filter *const filter = arena_take(exchange->arena, sizeof *filter);
	/* a request's arena has room when its body begins: headers are capped far below it */
	ASSERT(filter != NULL);
	filter->sink = (struct body_sink){filter_write, filter_finish, filter_abort};
	filter->exchange = exchange;
	filter->inner = payload_is_chunked(exchange) ? aws_chunked_new(exchange, inner) : inner;
	if (exchange->payload_rule == PAYLOAD_SHA256)
		filter->sha256 = sha256_stream_new();
	return &filter->sink;
}

static enum sink_result filter_write(struct body_sink *sink, struct span bytes, struct error *err)
{
	struct body_filter *const filter = (struct body_filter *)sink;
	const uint64_t most = most_bytes(filter->exchange);
	if (bytes.len > most - filter->received) {
		error_set(err, ERROR_TOO_LARGE, "the body is over %llu bytes",
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

/* Of what comes over the wire. The content inside a framing is limited by the one who takes the
 * framing off. */
static uint64_t most_bytes(const struct exchange *exchange)
{
	const uint64_t cap =
		payload_is_chunked(exchange) ? UINT64_MAX : exchange->context->put_max_bytes;
	return exchange->has_length && exchange->length < cap ? exchange->length : cap;
}

static int filter_finish(struct body_sink *sink, struct error *err)
{
	struct body_filter *const filter = (struct body_filter *)sink;
	const int outcome = check_whole(filter, err);
	if (outcome != 0)
		return outcome; /* abort follows and frees the rest */
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
			"the body ended after %llu of %llu bytes",
			(unsigned long long)filter->received, (unsigned long long)exchange->length);
	if (filter->sha256 == NULL)
		return 0;
	uint8_t actual[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];
	sha256_stream_result(filter->sha256, actual);
	if (memcmp(actual, exchange->payload_sha256, sizeof actual) == 0)
		return 0;
	encode_hex(span_of(exchange->payload_sha256, sizeof actual), hex);
	exchange_error_field(exchange, "ClientComputedContentSHA256", span_text(hex));
	encode_hex(span_of(actual, sizeof actual), hex);
	exchange_error_field(exchange, "S3ComputedContentSHA256", span_text(hex));
	return error_set(err, ERROR_SHA256_MISMATCH,
		"the SHA-256 of the body is not the one that x-amz-content-sha256 declares");
}

static void forget_sha256(struct body_filter *filter)
{
	if (filter->sha256 != NULL)
		sha256_stream_free(filter->sha256);
	filter->sha256 = NULL;
}

static void filter_abort(struct body_sink *sink)
{
	struct body_filter *const filter = (struct body_filter *)sink;
	forget_sha256(filter);
	filter->inner->abort(filter->inner);
}
