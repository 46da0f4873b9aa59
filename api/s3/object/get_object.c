/* Most of the reply is made by api/objects/object_reply.c, which calls back to find the version, to
 * choose a part and to add headers of S3. A key that does not exist may be a file of an anchor that
 * the server makes on demand (api/objects/anchor_wait.h): then the exchange waits and `resume`
 * looks again. */
#include "api/s3/object/handlers.h"

#include "api/objects/anchor_wait.h"
#include "api/objects/object_reply.h"
#include "api/s3/bucket/bucket_lifecycle.h"
#include "api/s3/object/object_request.h"
#include "api/s3/request/checksum_headers.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"
#include "storage/buckets/tag_set.h"
#include "storage/objects/object_part.h"

enum { PART_NUMBER_MAX = 10000 };

struct get_object { /* the exchange's state */
	struct anchor_wait wait;
	struct object_ref object;
	uint32_t part_number; /* 0: the request names none */
	bool with_checksum;
};

static const struct {
	const char *query;
	const char *header;
} overridable[] = {
	{"response-cache-control", "cache-control"},
	{"response-content-disposition", "content-disposition"},
	{"response-content-encoding", "content-encoding"},
	{"response-content-language", "content-language"},
	{"response-content-type", "content-type"},
	{"response-expires", "expires"},
};
enum { OVERRIDABLE = sizeof(overridable) / sizeof(overridable[0]) };

static const struct s3_request_refusal refusals[] = {
	{"x-amz-server-side-encryption-customer-", NULL,
		"Server-side encryption with customer keys is not implemented."},
};

static bool read_request(struct exchange *exchange, struct get_object *state, enum next *out_next);
static bool read_part_number(
	struct exchange *exchange, struct get_object *state, enum next *out_next);
static enum next reply(struct exchange *exchange);
static int get_object_find(
	struct exchange *exchange, struct object_view *view, struct object *out, struct error *err);
static bool may_be_anchor(const struct object_ref *asked, const struct object *found);
static enum next get_object_fail(struct exchange *exchange, const struct error *err);
static enum next get_object_make(struct exchange *exchange);
static int get_object_choose_part(struct exchange *exchange, const struct object *object,
	struct byte_range *out, struct error *err);
static void get_object_add_headers(
	struct exchange *exchange, const struct object *object, const struct byte_range *range);
static void add_checksum(
	struct exchange *exchange, const struct object *object, const struct byte_range *range);
static bool find_equal_part(struct exchange *exchange, const struct object *object,
	const struct byte_range *range, struct object_part *out);
static bool read_overrides(struct exchange *exchange,
	struct object_reply_override overrides[OVERRIDABLE], size_t *out_count,
	enum next *out_next);
static bool is_header_text(struct span value);

enum next get_object_begin(struct exchange *exchange)
{
	enum next next;
	struct get_object *const state = arena_take(exchange->arena, sizeof(*state));
	ASSERT(state != NULL);
	exchange->state = state;
	anchor_wait_init(&state->wait, exchange);
	if (!read_request(exchange, state, &next))
		return next;
	state->with_checksum = span_equal_nocase(
		span_trim(exchange_header(exchange, "x-amz-checksum-mode")), "ENABLED");
	return reply(exchange);
}

enum next get_object_resume(struct exchange *exchange)
{
	return reply(exchange);
}

static bool read_request(struct exchange *exchange, struct get_object *state, enum next *out_next)
{
	const struct span source = exchange_header(exchange, "x-amz-copy-source");
	struct error err = {0};
	*out_next = NEXT_REPLY;
	if (s3_request_refuses(
		    exchange, refusals, sizeof(refusals) / sizeof(refusals[0]), out_next))
		return false;
	if (source.data != NULL)
		s3_error_argument(exchange, "x-amz-copy-source", source,
			"You can only specify a copy source header for copy requests.");
	else if (s3_request_check_owner(exchange, &err) != 0)
		exchange_fail(exchange, &err);
	else
		return object_request_ref(exchange, &state->object, out_next) &&
			read_part_number(exchange, state, out_next);
	return false;
}

static bool read_part_number(
	struct exchange *exchange, struct get_object *state, enum next *out_next)
{
	struct span text;
	uint64_t number = 0;
	if (!exchange_query(exchange, "partNumber", &text))
		return true;
	if (!span_parse_u64(text, &number) || number < 1 || number > PART_NUMBER_MAX) {
		*out_next = s3_error_argument(exchange, "partNumber", text,
			"Part number must be an integer between 1 and 10000, inclusive");
		return false;
	}
	state->part_number = (uint32_t)number;
	if (exchange_header(exchange, "range").len == 0)
		return true;
	*out_next = s3_error_reply(exchange,
		&(struct s3_error){.kind = ERROR_INVALID_REQUEST,
			.message =
				"Cannot specify both Range header and partNumber query parameter"});
	return false;
}

static enum next reply(struct exchange *exchange)
{
	struct object_reply_override overrides[OVERRIDABLE];
	struct object_reply_params params = {.find = get_object_find,
		.fail = get_object_fail,
		.make = get_object_make,
		.choose = get_object_choose_part,
		.add_identity = object_request_add_version,
		.add_headers = get_object_add_headers,
		.overrides = overrides};
	enum next next;
	if (!read_overrides(exchange, overrides, &params.override_count, &next))
		return next;
	return object_reply(exchange, &params);
}

static int get_object_find(
	struct exchange *exchange, struct object_view *view, struct object *out, struct error *err)
{
	struct get_object *const state = exchange->state;
	ASSERT(state != NULL);
	const struct object_ref *const asked = &state->object;
	anchor_wait_look(&state->wait);
	const int result = object_request_view(exchange, view, asked, out, err);
	if (result == 0 || err->kind != ERROR_NO_KEY || !may_be_anchor(asked, out))
		return result;
	if (run_find_anchor_key(exchange->context->store, asked, exchange->arena, out,
		    &state->wait.anchor, err) == 0)
		return 0;
	if (err->kind != ERROR_NO_KEY || !state->wait.anchor.is_view ||
		object_view_renew(view, err) != 0)
		return -1;
	/* the step's view may have been made since `view` was opened */
	return object_request_view(exchange, view, asked, out, err);
}

/* A key without an object may be a file of a step. A caller that was let into one version alone
 * does not see it. */
static bool may_be_anchor(const struct object_ref *asked, const struct object *found)
{
	return asked->version.kind == VERSION_REF_CURRENT && asked->judged_version == 0 &&
		!found->is_marker;
}

static enum next get_object_fail(struct exchange *exchange, const struct error *err)
{
	return err->kind == ERROR_NOT_READY ? get_object_make(exchange)
					    : object_request_fail(exchange, err);
}

/* Has the server make a file of an anchor that was not published. */
static enum next get_object_make(struct exchange *exchange)
{
	return anchor_wait_for(&((struct get_object *)exchange->state)->wait);
}

/* A part of a multipart object; an object of a single PUT has one part. The reply is 206 even when
 * the part is the whole object, except for an empty one, because no range can be empty. */
static int get_object_choose_part(struct exchange *exchange, const struct object *object,
	struct byte_range *out, struct error *err)
{
	const struct get_object *const state = exchange->state;
	struct object_part part;
	if (state->part_number == 0)
		return 0;
	if (object_find_part(exchange->context->store, object, state->part_number, &part, err) != 0)
		return -1;
	*out = (struct byte_range){.kind = part.size > 0 ? BYTE_RANGE_PART : BYTE_RANGE_WHOLE,
		.first = part.offset,
		.length = part.size};
	return 1;
}

static void get_object_add_headers(
	struct exchange *exchange, const struct object *object, const struct byte_range *range)
{
	const struct get_object *const state = exchange->state;
	const unsigned tags = tag_set_count(object->tags);
	bucket_lifecycle_add_expiration(exchange, object);
	if (tags > 0)
		exchange_add_header(
			exchange, "x-amz-tagging-count", arena_format(exchange->arena, "%u", tags));
	if (object->storage_class != STORAGE_STANDARD)
		exchange_add_header(
			exchange, "x-amz-storage-class", storage_class_name(object->storage_class));
	if (state->part_number > 0 && object->part_count > 0)
		exchange_add_header(exchange, "x-amz-mp-parts-count",
			arena_format(exchange->arena, "%u", object->part_count));
	if (state->with_checksum)
		add_checksum(exchange, object, range);
}

/* Some of the bytes never come with the checksum of the whole object, because clients check every
 * checksum that they get. */
static void add_checksum(
	struct exchange *exchange, const struct object *object, const struct byte_range *range)
{
	const struct get_object *const state = exchange->state;
	struct object_part part;
	struct error err = {0};
	if (range->kind == BYTE_RANGE_WHOLE && state->part_number == 0) {
		checksum_headers_add(exchange, &object->checksum, object->part_count);
		checksum_headers_add_type(exchange, &object->checksum);
		return;
	}
	const bool found = state->part_number > 0
		? object_find_part(
			  exchange->context->store, object, state->part_number, &part, &err) == 0
		: find_equal_part(exchange, object, range, &part);
	if (found)
		checksum_headers_add(exchange, &part.checksum, 0);
}

/* Finds the part that has exactly the bytes of `range`, so that clients that read in ranges of
 * their part size can check each one. All parts but the last nearly always have the same size, so
 * one division gives the number; parts of other sizes are not found. */
static bool find_equal_part(struct exchange *exchange, const struct object *object,
	const struct byte_range *range, struct object_part *out)
{
	struct error err = {0};
	ASSERT(range->kind == BYTE_RANGE_PART && range->length > 0);
	const uint64_t number = range->first + range->length == object->size
		? object->part_count
		: range->first / range->length + 1;
	if (number == 0 || number > object->part_count)
		return false;
	return object_find_part(exchange->context->store, object, (uint32_t)number, out, &err) ==
		0 &&
		out->offset == range->first && out->size == range->length;
}

/* Fills `overrides`. Returns false with the reply set when one of them is refused. */
static bool read_overrides(struct exchange *exchange,
	struct object_reply_override overrides[OVERRIDABLE], size_t *out_count, enum next *out_next)
{
	for (size_t i = 0; i < OVERRIDABLE; i++) {
		struct span value;
		if (!exchange_query(exchange, overridable[i].query, &value))
			continue;
		if (exchange->principal == NULL) {
			*out_next = s3_error_reply(exchange,
				&(struct s3_error){.kind = ERROR_INVALID,
					.code = "InvalidRequest",
					.message =
						"Request specific response headers cannot be used for anonymous GET requests."});
			return false;
		}
		if (!is_header_text(value)) {
			*out_next = s3_error_argument(exchange, overridable[i].query, value,
				"The value must not have control characters.");
			return false;
		}
		ASSERT(*out_count < OVERRIDABLE);
		overrides[(*out_count)++] = (struct object_reply_override){
			overridable[i].header, arena_text(exchange->arena, value)};
	}
	return true;
}

/* A decoded query value may have characters that a header must not have, such as line ends. */
static bool is_header_text(struct span value)
{
	for (size_t i = 0; i < value.len; i++) {
		if ((value.data[i] < 0x20 && value.data[i] != '\t') || value.data[i] == 0x7f)
			return false;
	}
	return true;
}
