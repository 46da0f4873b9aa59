/* All settings that the request gives are collected into one bucket_edit: the headers' in `begin`,
 * the body's in `finish`. The bucket is then made with them in one change. */
#include "api/s3/bucket/handlers.h"

#include "api/auth/keyring.h"
#include "api/s3/bucket/bucket_tagging.h"
#include "api/s3/bucket/ownership_controls.h"
#include "api/s3/request/acl.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/xml/xml_tree.h"
#include "storage/buckets/tag_set.h"

enum { BODY_MAX_BYTES = 256 * 1024, LOCATION_MAX_BYTES = 64, DOCUMENTS_MAX = 3 };

struct create_bucket {                                   /* the exchange's state */
	struct bucket_document documents[DOCUMENTS_MAX]; /* tags, ownership, location */
	struct bucket_grant grants[BUCKET_GRANTS_OF_ACL_MAX];
	struct bucket_edit edit;
};

static const struct s3_request_refusal refusals[] = {
	{"x-amz-bucket-object-lock-enabled", "false|False", "Object lock is not implemented."},
};

static struct create_bucket *make_state(struct exchange *exchange);
static int read_etag(struct span value, struct create_bucket *state, struct error *err);
static int read_ownership(struct span value, struct create_bucket *state, struct error *err);
static void add_document(
	struct create_bucket *state, enum bucket_document_kind kind, struct span bytes);
static int read_configuration(struct exchange *exchange, struct span *out_tags,
	struct span *out_location, struct error *err);

enum next create_bucket_begin(struct exchange *exchange)
{
	struct create_bucket *const state = make_state(exchange);
	struct error err = {0};
	bool given;
	enum canned_acl acl;
	enum next next;
	if (s3_request_refuses(
		    exchange, refusals, sizeof(refusals) / sizeof(refusals[0]), &next))
		return next;
	ASSERT(exchange->principal != NULL); /* the route's access needs a signed request */
	if (bucket_check_name(
		    exchange_bucket(exchange).name, exchange->principal->namespace, &err) != 0 ||
		read_etag(span_trim(exchange_header(exchange, "x-deltabucket-etag")), state,
			&err) != 0 ||
		read_ownership(span_trim(exchange_header(exchange, "x-amz-object-ownership")),
			state, &err) != 0)
		return exchange_fail(exchange, &err);
	if (acl_headers(exchange, &given, &acl, &err) != 0)
		return acl_fail(exchange, &err);
	const struct span ownership =
		span_trim(exchange_header(exchange, "x-amz-object-ownership"));
	if (acl != ACL_PRIVATE && span_equal_text(ownership, "BucketOwnerEnforced"))
		return s3_error_reply(exchange,
			&(struct s3_error){.kind = ERROR_INVALID,
				.code = "InvalidBucketAclWithObjectOwnership",
				.message =
					"Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced setting"});
	state->edit.grants = state->grants;
	state->edit.grant_count = bucket_grant_of_acl(acl, state->grants);
	state->edit.replaces_grants =
		acl != ACL_PRIVATE ? BUCKET_GRANTS_OF_ACL : BUCKET_GRANTS_NONE;
	return exchange_accept_small(exchange, BODY_MAX_BYTES);
}

enum next create_bucket_finish(struct exchange *exchange)
{
	struct create_bucket *const state = exchange->state;
	ASSERT(state != NULL);
	struct span tags = {NULL, 0};
	struct span location = {NULL, 0};
	struct error err = {0};
	if (read_configuration(exchange, &tags, &location, &err) != 0)
		return exchange_fail(exchange, &err);
	if (location.len > LOCATION_MAX_BYTES)
		return s3_error_reply(exchange,
			&(struct s3_error){.kind = ERROR_INVALID,
				.code = "InvalidLocationConstraint",
				.message = "The specified location-constraint is not valid."});
	add_document(state, BUCKET_TAGS, tags);
	add_document(state, BUCKET_LOCATION, location);
	return exchange_await(exchange,
		bucket_create_call(exchange->context->store, exchange_bucket(exchange).name,
			exchange->principal->namespace, &state->edit));
}

enum next create_bucket_resume(struct exchange *exchange)
{
	struct error err = {0};
	if (call_outcome(exchange->call, &err) != 0 && err.kind != ERROR_BUCKET_OWNED)
		return exchange_fail(exchange, &err);
	const char *const bucket = arena_text(exchange->arena, exchange_bucket(exchange).name);
	exchange_add_header(exchange, "Location", arena_format(exchange->arena, "/%s", bucket));
	return exchange_reply_empty(exchange, 200);
}

static struct create_bucket *make_state(struct exchange *exchange)
{
	struct create_bucket *const state = arena_take(exchange->arena, sizeof(*state));
	ASSERT(state != NULL); /* little else is in the arena yet */
	state->edit.documents = state->documents;
	exchange->state = state;
	return state;
}

static int read_etag(struct span value, struct create_bucket *state, struct error *err)
{
	if (value.len == 0)
		return 0;
	state->edit.sets_etag_policy = true;
	return etag_policy_parse(value, &state->edit.etag_policy)
		? 0
		: error_set(err, ERROR_INVALID,
			  "The header x-deltabucket-etag must be md5, fast or default.");
}

static int read_ownership(struct span value, struct create_bucket *state, struct error *err)
{
	if (value.len > 0 && !ownership_controls_is_value(value))
		return error_set(err, ERROR_INVALID,
			"The header x-amz-object-ownership must be BucketOwnerEnforced, BucketOwnerPreferred or ObjectWriter.");
	add_document(state, BUCKET_OWNERSHIP, value);
	return 0;
}

static void add_document(
	struct create_bucket *state, enum bucket_document_kind kind, struct span bytes)
{
	if (bytes.len == 0)
		return;
	ASSERT(state->edit.document_count < DOCUMENTS_MAX);
	state->documents[state->edit.document_count++] = (struct bucket_document){kind, bytes};
}

/* Any region is accepted and stored for GetBucketLocation, because clients are configured with all
 * sorts of names and this server has only one place. */
static int read_configuration(struct exchange *exchange, struct span *out_tags,
	struct span *out_location, struct error *err)
{
	static const char children[] = "LocationConstraint|Tags|Location|Bucket";
	struct xml_node *root;
	const struct span body = exchange_body(exchange);
	if (body.len == 0)
		return 0;
	if (xml_tree_parse(body, "CreateBucketConfiguration", exchange->arena, &root, err) != 0 ||
		xml_tree_check(root, children, children, err) != 0)
		return -1;
	*out_location = span_trim(xml_tree_text(root, "LocationConstraint"));
	const struct xml_node *const tags = xml_tree_child(root, "Tags");
	return tags == NULL
		? 0
		: bucket_tagging_read(tags, TAG_SET_BUCKET_MAX, exchange->arena, out_tags, err);
}
