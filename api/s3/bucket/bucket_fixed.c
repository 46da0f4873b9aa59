#include "api/s3/bucket/bucket_fixed.h"

#include <string.h>

#include "api/exchange/route.h"
#include "api/s3/bucket/bucket_setting.h"
#include "api/s3/request/not_implemented.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/request/xml_body.h"
#include "api/s3/xml/xml_tree.h"
#include "api/s3/xml/xml_writer.h"

enum { BODY_MAX_BYTES = 4096 };

#define NO_CONFIGURATION "NoSuchConfiguration"

static const struct bucket_fixed rows[] = {
	{.query = "accelerate", .status = 200, .root = "AccelerateConfiguration"},
	{.query = "analytics",
		.status = 200,
		.root = "ListBucketAnalyticsConfigurationResult",
		.child = "IsTruncated",
		.value = "false",
		.id_code = NO_CONFIGURATION},
	{.query = "encryption",
		.status = 404,
		.code = "ServerSideEncryptionConfigurationNotFoundError",
		.message = "The server side encryption configuration was not found",
		.drops = true},
	{.query = "intelligent-tiering",
		.status = 200,
		.root = "ListBucketIntelligentTieringConfigurationsOutput",
		.child = "IsTruncated",
		.value = "false",
		.id_code = NO_CONFIGURATION},
	{.query = "inventory",
		.status = 200,
		.root = "ListInventoryConfigurationsResult",
		.child = "IsTruncated",
		.value = "false",
		.id_code = NO_CONFIGURATION},
	{.query = "logging", .status = 200, .root = "BucketLoggingStatus", .takes_same = true},
	{.query = "metrics",
		.status = 200,
		.root = "ListMetricsConfigurationsResult",
		.child = "IsTruncated",
		.value = "false",
		.id_code = NO_CONFIGURATION},
	{.query = "notification",
		.status = 200,
		.root = "NotificationConfiguration",
		.takes_same = true},
	{.query = "object-lock",
		.status = 404,
		.code = "ObjectLockConfigurationNotFoundError",
		.message = "Object Lock configuration does not exist for this bucket"},
	{.query = "replication",
		.status = 404,
		.code = "ReplicationConfigurationNotFoundError",
		.message = "The replication configuration was not found",
		.drops = true},
	{.query = "requestPayment",
		.status = 200,
		.root = "RequestPaymentConfiguration",
		.child = "Payer",
		.value = "BucketOwner",
		.takes_same = true},
	{.query = "website",
		.status = 404,
		.code = "NoSuchWebsiteConfiguration",
		.message = "The specified bucket does not have a website configuration",
		.drops = true},
	{.query = "legal-hold",
		.on_objects = true,
		.status = 400,
		.code = "InvalidRequest",
		.message = "Bucket is missing Object Lock Configuration"},
	{.query = "retention",
		.on_objects = true,
		.status = 400,
		.code = "InvalidRequest",
		.message = "Bucket is missing Object Lock Configuration"},
};

static const struct bucket_fixed *row_of(const struct exchange *exchange);
static int check_bucket(struct exchange *exchange, struct error *err);
static bool names_absent(struct exchange *exchange, const struct bucket_fixed *row);
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
	struct error err = {0};
	if (check_bucket(exchange, &err) != 0)
		return exchange_fail(exchange, &err);
	if (names_absent(exchange, row))
		return reply_absent(
			exchange, 404, row->id_code, "The specified configuration does not exist.");
	if (row->root == NULL)
		return reply_absent(exchange, row->status, row->code, row->message);
	struct buffer body;
	struct xml_writer xml;
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
	struct error err = {0};
	if (check_bucket(exchange, &err) != 0)
		return exchange_fail(exchange, &err);
	if (names_absent(exchange, row))
		return reply_absent(
			exchange, 404, row->id_code, "The specified configuration does not exist.");
	return row->drops ? exchange_reply_empty(exchange, 204) : not_implemented_begin(exchange);
}

/* The route's row names the query too. */
static const struct bucket_fixed *row_of(const struct exchange *exchange)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i].query, exchange->route->query) == 0)
			return &rows[i];
	ASSERT(!"a route to a fixed setting has a row");
	return NULL;
}

static int check_bucket(struct exchange *exchange, struct error *err)
{
	struct bucket bucket;
	if (s3_request_check_owner(exchange, err) != 0)
		return -1;
	return bucket_find(
		exchange->context->store, exchange_bucket(exchange), exchange->arena, &bucket, err);
}

static bool names_absent(struct exchange *exchange, const struct bucket_fixed *row)
{
	struct span id;
	return row->id_code != NULL && exchange_query(exchange, "id", &id);
}

static enum next reply_absent(
	struct exchange *exchange, int status, const char *code, const char *message)
{
	const struct s3_error error = {.kind = status == 404 ? ERROR_NOT_FOUND : ERROR_INVALID,
		.code = code,
		.message = message};
	return s3_error_reply(exchange, &error);
}

static int is_same(const struct bucket_fixed *row, struct span xml, struct arena *arena,
	bool *out_same, struct error *err)
{
	struct xml_node *root;
	if (xml_tree_parse(xml, row->root, arena, &root, err) != 0)
		return -1;
	if (row->child == NULL)
		*out_same = root->child == NULL;
	else
		*out_same = root->child != NULL && root->child->next == NULL &&
			span_equal_text(xml_tree_text(root, row->child), row->value);
	return 0;
}
