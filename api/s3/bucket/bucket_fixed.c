/* Each setting is one row; the route's marker names it. The row has what S3 answers for a bucket
 * without the setting, and which PUT or DELETE changes nothing, so one GET, one PUT and one DELETE
 * serve all of them. */
#include "api/s3/bucket/bucket_fixed.h"

#include <string.h>

#include "api/exchange/route.h"

#include "api/s3/bucket/handlers.h"
#include "api/s3/request/not_implemented.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/request/xml_body.h"
#include "api/s3/xml/xml_tree.h"
#include "api/s3/xml/xml_writer.h"

enum { BODY_MAX_BYTES = 4096 };

/* A GET gives a document, a list without entries, or an error. The parameter `id` asks for one
 * entry of a list. */
#define DOCUMENT(root_element) .status = 200, .root = root_element
#define EMPTY_LIST(root_element)                                          \
	DOCUMENT(root_element), .child = "IsTruncated", .value = "false", \
				.id_code = "NoSuchConfiguration"
#define ABSENT(error_code, text) .status = 404, .code = error_code, .message = text
#define NO_OBJECT_LOCK                                               \
	.on_objects = true, .status = 400, .code = "InvalidRequest", \
	.message = "Bucket is missing Object Lock Configuration"

static const struct bucket_fixed rows[] = {
	{"accelerate", DOCUMENT("AccelerateConfiguration")},
	{"analytics", EMPTY_LIST("ListBucketAnalyticsConfigurationResult")},
	{"encryption",
		ABSENT("ServerSideEncryptionConfigurationNotFoundError",
			"The server side encryption configuration was not found"),
		.drops = true},
	{"intelligent-tiering", EMPTY_LIST("ListBucketIntelligentTieringConfigurationsOutput")},
	{"inventory", EMPTY_LIST("ListInventoryConfigurationsResult")},
	{"logging", DOCUMENT("BucketLoggingStatus"), .takes_same = true},
	{"metrics", EMPTY_LIST("ListMetricsConfigurationsResult")},
	{"notification", DOCUMENT("NotificationConfiguration"), .takes_same = true},
	{"object-lock",
		ABSENT("ObjectLockConfigurationNotFoundError",
			"Object Lock configuration does not exist for this bucket")},
	{"replication",
		ABSENT("ReplicationConfigurationNotFoundError",
			"The replication configuration was not found"),
		.drops = true},
	{"requestPayment", DOCUMENT("RequestPaymentConfiguration"), .child = "Payer",
		.value = "BucketOwner", .takes_same = true},
	{"website",
		ABSENT("NoSuchWebsiteConfiguration",
			"The specified bucket does not have a website configuration"),
		.drops = true},
	{"legal-hold", NO_OBJECT_LOCK},
	{"retention", NO_OBJECT_LOCK},
};

static const struct bucket_fixed *row_of(const struct exchange *exchange);
static bool find_setting(
	struct exchange *exchange, const struct bucket_fixed *row, enum next *out_next);
static int check_bucket(struct exchange *exchange, struct error *err);
static enum next reply_absent(
	struct exchange *exchange, int status, const char *code, const char *message);
static int is_same(const struct bucket_fixed *row, struct span xml, struct arena *arena,
	bool *out_same, struct error *err);

const struct bucket_fixed *bucket_fixed_rows(size_t *out_count)
{
	*out_count = sizeof(rows) / sizeof(rows[0]);
	return rows;
}

enum next bucket_fixed_get_begin(struct exchange *exchange)
{
	const struct bucket_fixed *const row = row_of(exchange);
	struct buffer body;
	struct xml_writer xml;
	enum next next;
	if (!find_setting(exchange, row, &next))
		return next;
	if (row->root == NULL)
		return reply_absent(exchange, row->status, row->code, row->message);
	buffer_init(&body, BODY_MAX_BYTES);
	xml_writer_begin(&xml, &body, row->root, true);
	if (row->child != NULL)
		xml_writer_text(&xml, row->child, span_text(row->value));
	xml_writer_end(&xml);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}

enum next bucket_fixed_put_finish(struct exchange *exchange)
{
	const struct bucket_fixed *const row = row_of(exchange);
	struct error err = {0};
	enum next next;
	struct span xml;
	bool same = false;
	if (!xml_body_check(exchange, &xml, &next))
		return next;
	if (check_bucket(exchange, &err) != 0 ||
		(row->takes_same && is_same(row, xml, exchange->arena, &same, &err) != 0))
		return exchange_fail(exchange, &err);
	return same ? exchange_reply_empty(exchange, 200) : not_implemented_begin(exchange);
}

enum next bucket_fixed_delete_begin(struct exchange *exchange)
{
	const struct bucket_fixed *const row = row_of(exchange);
	enum next next;
	if (!find_setting(exchange, row, &next))
		return next;
	return row->drops ? exchange_reply_empty(exchange, 204) : not_implemented_begin(exchange);
}

/* The route has the same marker. */
static const struct bucket_fixed *row_of(const struct exchange *exchange)
{
	ASSERT(exchange->route != NULL && exchange->route->query != NULL);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i].query, exchange->route->query) == 0)
			return &rows[i];
	error_assert_failed("a route to a fixed setting has a row", __FILE__, __LINE__);
}

/* False with the reply set when the bucket, or the list's entry that `id` names, does not exist. */
static bool find_setting(
	struct exchange *exchange, const struct bucket_fixed *row, enum next *out_next)
{
	struct error err = {0};
	struct span id;
	if (check_bucket(exchange, &err) != 0) {
		*out_next = exchange_fail(exchange, &err);
		return false;
	}
	if (row->id_code == NULL || !exchange_query(exchange, "id", &id))
		return true;
	*out_next = reply_absent(
		exchange, 404, row->id_code, "The specified configuration does not exist.");
	return false;
}

static int check_bucket(struct exchange *exchange, struct error *err)
{
	struct bucket bucket;
	if (s3_request_check_owner(exchange, err) != 0)
		return -1;
	return bucket_find(
		exchange->context->store, exchange_bucket(exchange), exchange->arena, &bucket, err);
}

static enum next reply_absent(
	struct exchange *exchange, int status, const char *code, const char *message)
{
	ASSERT(status == 404 || status == 400);
	const struct s3_error error = {.kind = status == 404 ? ERROR_NOT_FOUND : ERROR_INVALID,
		.code = code,
		.message = message};
	return s3_error_reply(exchange, &error);
}

/* Whether a PUT's body is what a GET gives. */
static int is_same(const struct bucket_fixed *row, struct span xml, struct arena *arena,
	bool *out_same, struct error *err)
{
	struct xml_node *root;
	ASSERT(row->root != NULL);
	if (xml_tree_parse(xml, row->root, arena, &root, err) != 0)
		return -1;
	if (row->child == NULL)
		*out_same = root->child == NULL;
	else
		*out_same = root->child != NULL && root->child->next == NULL &&
			span_equal_text(xml_tree_text(root, row->child), row->value);
	return 0;
}
