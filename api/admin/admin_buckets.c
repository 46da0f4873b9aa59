#include "api/admin/admin_buckets.h"

#include "base/format/json_node.h"

enum { REQUEST_MAX_BYTES = 4096, REPLY_MAX_BYTES = 4096 };

/* The settings that GetBucket tells the presence of, by the name of their S3 query. */
static const struct {
	const char *name;
	enum bucket_document_kind kind;
} documents[] = {{"tagging", BUCKET_TAGS}, {"cors", BUCKET_CORS}, {"policy", BUCKET_POLICY},
	{"lifecycle", BUCKET_LIFECYCLE}, {"publicAccessBlock", BUCKET_PUBLIC_ACCESS},
	{"ownershipControls", BUCKET_OWNERSHIP}};
enum { DOCUMENT_COUNT = sizeof(documents) / sizeof(documents[0]) };

static int find_documents(struct exchange *exchange, bool *out, struct error *err);
static void print_documents(const bool *found, struct json_writer *json);

enum next admin_bucket_get_begin(struct exchange *exchange)
{
	struct store *const store = exchange->context->store;
	struct error err = {0};
	struct bucket bucket;
	struct buffer body;
	struct json_writer json;
	char created[CLOCK_TEXT_BYTES];
	bool found[DOCUMENT_COUNT];
	if (bucket_find(store, exchange_bucket(exchange), exchange->arena, &bucket, &err) != 0 ||
		find_documents(exchange, found, &err) != 0)
		return exchange_fail(exchange, &err);
	const bool fast = bucket.etag_policy == ETAG_FAST ||
		(bucket.etag_policy == ETAG_DEFAULT && store_fast_etags(store));
	clock_format_iso(bucket.created_ms, created);
	buffer_init(&body, REPLY_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_object(&json, NULL);
	json_writer_text(&json, "bucket", bucket.name);
	json_writer_text(&json, "namespace", bucket.owner);
	json_writer_text(&json, "created", span_text(created));
	json_writer_text(&json, "versioning", span_text(bucket_versioning_word(bucket.versioning)));
	json_writer_text(&json, "etag", span_text(etag_policy_name(bucket.etag_policy)));
	json_writer_text(&json, "etag_in_use", span_text(fast ? "fast" : "md5"));
	print_documents(found, &json);
	json_writer_end(&json, '}');
	return exchange_reply_buffer(exchange, 200, "application/json", &body);
}

static int find_documents(struct exchange *exchange, bool *out, struct error *err)
{
	struct store *const store = exchange->context->store;
	for (size_t i = 0; i < DOCUMENT_COUNT; i++) {
		struct span document = {NULL, 0};
		if (bucket_document_find(store, exchange_bucket(exchange), documents[i].kind,
			    exchange->arena, &document, err) != 0)
			return -1;
		out[i] = document.len > 0;
	}
	return 0;
}

static void print_documents(const bool *found, struct json_writer *json)
{
	json_writer_array(json, "documents");
	for (size_t i = 0; i < DOCUMENT_COUNT; i++)
		if (found[i])
			json_writer_text(json, NULL, span_text(documents[i].name));
	json_writer_end(json, ']');
}

enum next admin_bucket_put_begin(struct exchange *exchange)
{
	return exchange_accept_small(exchange, REQUEST_MAX_BYTES);
}

int admin_bucket_parse(struct span json, struct bucket_edit *out, struct error *err)
{
	struct json_node *const root = json_node_parse(json, "The request body", err);
	struct bucket_edit edit = {.sets_etag_policy = true};
	struct span etag;
	if (root == NULL)
		return -1;
	int outcome = 0;
	if (json_node_count(root) != 1 || !json_node_text(json_node_member(root, "etag"), &etag) ||
		!etag_policy_parse(etag, &edit.etag_policy))
		outcome = error_set(err, ERROR_INVALID,
			"The request body must be {\"etag\": \"md5\"}, or the same with \"fast\" or \"default\".");
	json_node_free(root);
	if (outcome == 0)
		*out = edit;
	return outcome;
}

enum next admin_bucket_put_finish(struct exchange *exchange)
{
	struct error err = {0};
	struct bucket_edit edit;
	if (admin_bucket_parse(exchange_body(exchange), &edit, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_await(exchange,
		bucket_edit_call(exchange->context->store, exchange_bucket(exchange), &edit));
}

enum next admin_bucket_put_resume(struct exchange *exchange)
{
	struct error err = {0};
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	return admin_bucket_get_begin(exchange);
}
