/* Without a STREAMING- keyword, only other headers show whether the body is framed. It is raw when
 * no header mentions a framing, or when the declared content is as long as the body. It is framed
 * when the content is shorter and Content-Encoding says aws-chunked. "aws-chunked" alone means raw
 * when the SHA-256 of the body is declared, because some clients set it like any other encoding.
 * All other combinations are ambiguous and are refused, so that framing is never stored as
 * content. */
#include "api/exchange/payload.h"

#include "api/exchange/route.h"
#include "base/digest/digest.h"
#include "base/encode.h"

static const struct keyword {
	const char *text;
	enum payload_rule rule;
} keywords[] = {
	{"UNSIGNED-PAYLOAD", PAYLOAD_UNSIGNED},
	{"STREAMING-UNSIGNED-PAYLOAD-TRAILER", PAYLOAD_CHUNKED},
	{"STREAMING-AWS4-HMAC-SHA256-PAYLOAD", PAYLOAD_CHUNKED_SIGNED},
	{"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", PAYLOAD_CHUNKED_SIGNED_TRAILER},
};

static int read_keyword(struct exchange *exchange, struct span declared, struct error *err);
static int read_length(struct exchange *exchange, struct error *err);
static int judge_framing(struct exchange *exchange, struct error *err);
static bool says_chunked(struct exchange *exchange);
static int check_route(const struct exchange *exchange, bool signs_chunks, struct error *err);
static int read_trailer(struct exchange *exchange, struct error *err);

bool payload_is_chunked(const struct exchange *exchange)
{
	return exchange->payload_rule >= PAYLOAD_CHUNKED;
}

int payload_read(
	struct exchange *exchange, struct span declared, bool signs_chunks, struct error *err)
{
	exchange->payload_rule = PAYLOAD_UNSIGNED;
	exchange->trailer_algorithm = CHECKSUM_NONE;
	if (declared.data != NULL && read_keyword(exchange, declared, err) != 0)
		return -1;
	if (read_length(exchange, err) != 0)
		return -1;
	if (!payload_is_chunked(exchange) && judge_framing(exchange, err) != 0)
		return -1;
	if (check_route(exchange, signs_chunks, err) != 0 || read_trailer(exchange, err) != 0)
		return -1;
	if (!payload_is_chunked(exchange)) {
		exchange->has_body_length = exchange->has_length;
		exchange->body_length = exchange->length;
	}
	return 0;
}

static int read_keyword(struct exchange *exchange, struct span declared, struct error *err)
{
	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
		if (span_equal_text(declared, keywords[i].text)) {
			exchange->payload_rule = keywords[i].rule;
			return 0;
		}
	if (span_starts(declared, span_text("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD")))
		return error_set(err, ERROR_UNSUPPORTED,
			"Chunks signed with SigV4A are not implemented; use STREAMING-AWS4-HMAC-SHA256-PAYLOAD.");
	if (!decode_hex(declared, exchange->payload_sha256, SHA256_BYTES)) {
		exchange_error_field(exchange, "ArgumentName", span_text("x-amz-content-sha256"));
		exchange_error_field(exchange, "ArgumentValue", declared);
		return error_set(err, ERROR_INVALID,
			"x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER, "
			"STREAMING-AWS4-HMAC-SHA256-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER or 64 hexadecimal digits.");
	}
	exchange->payload_rule = PAYLOAD_SHA256;
	return 0;
}

static int read_length(struct exchange *exchange, struct error *err)
{
	const struct span text = exchange_header(exchange, "x-amz-decoded-content-length");
	exchange->has_body_length = text.data != NULL;
	if (text.data == NULL || span_parse_u64(span_trim(text), &exchange->body_length))
		return 0;
	exchange_error_field(exchange, "ArgumentName", span_text("x-amz-decoded-content-length"));
	exchange_error_field(exchange, "ArgumentValue", text);
	return error_set(
		err, ERROR_INVALID, "x-amz-decoded-content-length is not a number of bytes.");
}

/* For bodies whose keyword does not announce a framing. */
static int judge_framing(struct exchange *exchange, struct error *err)
{
	const bool says = says_chunked(exchange);
	if (!exchange->chunked && (!exchange->has_length || exchange->length == 0))
		return 0; /* no body */
	if (!exchange->has_body_length && (!says || exchange->payload_rule == PAYLOAD_SHA256))
		return 0;
	if (exchange->has_body_length && exchange->has_length &&
		exchange->body_length == exchange->length)
		return 0;
	if (!exchange->has_body_length || !says || exchange->payload_rule == PAYLOAD_SHA256)
		return error_set(err, ERROR_INVALID_REQUEST,
			"x-amz-content-sha256, Content-Encoding and x-amz-decoded-content-length contradict each other: "
			"it is unclear whether the body is aws-chunked.");
	exchange->payload_rule = PAYLOAD_CHUNKED;
	return 0;
}

static bool says_chunked(struct exchange *exchange)
{
	struct span rest = exchange_header(exchange, "content-encoding");
	struct span piece;
	while (span_split(&rest, ',', &piece))
		if (span_equal_nocase(span_trim(piece), "aws-chunked"))
			return true;
	return false;
}

static int check_route(const struct exchange *exchange, bool signs_chunks, struct error *err)
{
	if (!payload_is_chunked(exchange))
		return 0;
	if (exchange->payload_rule != PAYLOAD_CHUNKED && !signs_chunks)
		return error_set(err, ERROR_INVALID_REQUEST,
			"Signed chunks need a signature in the Authorization header.");
	if (exchange->route == NULL || exchange->route->body != BODY_STREAM ||
		exchange->method != METHOD_PUT)
		return error_set(err, ERROR_INVALID_REQUEST,
			"Only PutObject and UploadPart accept aws-chunked bodies.");
	return 0;
}

static int read_trailer(struct exchange *exchange, struct error *err)
{
	const struct span text = span_trim(exchange_header(exchange, "x-amz-trailer"));
	if (text.data == NULL || text.len == 0)
		return exchange->payload_rule != PAYLOAD_CHUNKED_SIGNED_TRAILER
			? 0
			: error_set(err, ERROR_INVALID_REQUEST,
				  "x-amz-content-sha256 announces a trailer, but the header x-amz-trailer is missing.");
	exchange->trailer_algorithm = checksum_by_header(text);
	if (exchange->trailer_algorithm == CHECKSUM_NONE)
		return error_set(err, ERROR_INVALID_REQUEST,
			"The value specified in the x-amz-trailer header is not supported.");
	if (!payload_is_chunked(exchange) || exchange->payload_rule == PAYLOAD_CHUNKED_SIGNED)
		return error_set(err, ERROR_INVALID_REQUEST,
			"x-amz-trailer announces a trailer, but x-amz-content-sha256 says that there is none.");
	return 0;
}
