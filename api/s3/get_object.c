#include "api/s3/get_object.h"

#include "api/object_reply.h"
#include "api/s3/s3_error.h"
#include "api/s3/s3_request.h"

static const struct { const char *query; const char *header; } overridable[] = {
	{"response-cache-control", "cache-control"},
	{"response-content-disposition", "content-disposition"},
	{"response-content-encoding", "content-encoding"},
	{"response-content-language", "content-language"},
	{"response-content-type", "content-type"},
	{"response-expires", "expires"},
};
enum { OVERRIDABLE = sizeof(overridable) / sizeof(overridable[0]) };

static const struct s3_request_refusal refusals[] = {
	{"x-amz-server-side-encryption-customer-", NULL, "Server-side encryption with customer keys is not implemented."},
	{"x-amz-copy-source", NULL, "Copying an object (x-amz-copy-source) goes with PUT."},
};

/* A decoded query value may hold what no header may: line ends above all. */
static bool is_header_text(const struct span value)
{
	for (size_t i = 0; i < value.len; i++) {
		if ((value.data[i] < 0x20 && value.data[i] != '\t') || value.data[i] == 0x7f)
			return false;
	}
	return true;
}

/* Fills `overrides`; false and the reply set when one must be refused. */
static bool read_overrides(struct exchange *const exchange, struct object_reply_override overrides[OVERRIDABLE], size_t *const out_count,
	enum next *const out_next)
{
	for (size_t i = 0; i < OVERRIDABLE; i++) {
		struct span value;
		if (!exchange_query(exchange, overridable[i].query, &value))
			continue;
		if (exchange->principal == NULL) {
			*out_next = s3_error_reply(exchange, &(struct s3_error){.kind = ERROR_INVALID, .code = "InvalidRequest",
				.message = "Request specific response headers cannot be used for anonymous GET requests."});
			return false;
		}
		if (!is_header_text(value)) {
			*out_next = s3_error_argument(exchange, overridable[i].query, value, "The value holds characters that no header may hold.");
			return false;
		}
		overrides[(*out_count)++] = (struct object_reply_override){overridable[i].header, arena_text(exchange->arena, value)};
	}
	return true;
}

static int find_current(struct exchange *const exchange, struct object *const out, struct error *const err)
{
	return object_find(exchange->context->store, s3_request_bucket(exchange), s3_request_key(exchange), exchange->arena, out, err);
}

enum next get_object_begin(struct exchange *const exchange)
{
	struct object_reply_override overrides[OVERRIDABLE];
	struct object_reply_params params = {.find = find_current, .overrides = overrides};
	struct error err = {0};
	enum next next;
	const struct s3_request_refusal *const refused = s3_request_refused(exchange, refusals, sizeof(refusals) / sizeof(refusals[0]));
	if (refused != NULL)
		return s3_error_not_implemented(exchange, refused->header, refused->message);
	if (!read_overrides(exchange, overrides, &params.override_count, &next))
		return next;
	if (s3_request_check_owner(exchange, &err) != 0)
		return exchange_fail(exchange, &err);
	return object_reply(exchange, &params);
}
