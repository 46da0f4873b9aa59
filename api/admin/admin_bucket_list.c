/* The page is chosen on the reactor, as S3's ListBuckets chooses its own. A helper reads what is
 * told of each bucket. Sums over a whole bucket are told only to callers that may list all of
 * it. */
#include "api/admin/admin_bucket_list.h"

#include "api/admin/admin_page.h"
#include "api/exchange/page_query.h"
#include "api/auth/known_buckets.h"
#include "api/exchange/principal.h"
#include "base/format/json_node.h"
#include "storage/survey/bucket_summary.h"

enum { PAGE_BUCKETS = 100, REPLY_MAX_BYTES = 1024 * 1024 };

struct listing { /* the exchange's state */
	struct bucket *buckets;
	size_t count; /* of those that are shown */
	bool more;
};

static int find_page(struct exchange *exchange, struct listing *listing, struct error *err);
static enum next reply(struct exchange *exchange, const struct listing *listing,
	const struct bucket_summary *summaries);
static void print_bucket(struct exchange *exchange, struct json_writer *json,
	const struct bucket *bucket, const struct bucket_summary *summary);
static void print_sums(struct json_writer *json, const struct bucket_summary *summary);
static void print_permissions(struct json_writer *json, unsigned permissions);

enum next admin_bucket_list_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct listing *const listing = arena_take(exchange->arena, sizeof(*listing));
	if (listing == NULL)
		error_set(&err, ERROR_NO_MEMORY, "The request's memory is full.");
	if (listing == NULL || find_page(exchange, listing, &err) != 0)
		return exchange_fail(exchange, &err);
	exchange->state = listing;
	if (listing->count == 0)
		return reply(exchange, listing, NULL);
	return exchange_await(exchange,
		bucket_summary_call(exchange->context->store, listing->buckets, listing->count));
}

enum next admin_bucket_list_resume(struct exchange *exchange)
{
	struct error err = {0};
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	return reply(exchange, exchange->state, bucket_summary_result(exchange->call));
}

static int find_page(struct exchange *exchange, struct listing *listing, struct error *err)
{
	struct known_buckets_params params = {.limit = 0};
	uint64_t limit;
	if (page_query_limit(exchange, PAGE_BUCKETS, BUCKET_SUMMARY_MAX, &limit, err) != 0)
		return -1;
	exchange_query(exchange, "after", &params.after);
	params.limit = limit + 1;
	if (known_buckets_list(exchange, &params, &listing->buckets, &listing->count, err) != 0)
		return -1;
	listing->more = listing->count > limit;
	if (listing->more)
		listing->count = limit;
	return 0;
}

static enum next reply(struct exchange *exchange, const struct listing *listing,
	const struct bucket_summary *summaries)
{
	struct buffer body;
	struct json_writer json;
	buffer_init(&body, REPLY_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_object(&json, NULL);
	json_writer_array(&json, "buckets");
	for (size_t i = 0; i < listing->count; i++)
		print_bucket(exchange, &json, &listing->buckets[i], &summaries[i]);
	json_writer_end(&json, ']');
	if (listing->more)
		json_writer_text(&json, "next", listing->buckets[listing->count - 1].name);
	json_writer_end(&json, '}');
	return exchange_reply_buffer(exchange, 200, "application/json", &body);
}

static void print_bucket(struct exchange *exchange, struct json_writer *json,
	const struct bucket *bucket, const struct bucket_summary *summary)
{
	const struct span all_of_it = {NULL, 0};
	json_writer_object(json, NULL);
	json_writer_text(json, "bucket", bucket->name);
	json_writer_text(json, "namespace", bucket->owner);
	admin_page_print_time(json, "created", bucket->created_ms);
	if (principal_allows(
		    exchange->principal, bucket->name, bucket->owner, all_of_it, PERMISSION_LIST))
		print_sums(json, summary);
	json_writer_bool(json, "public", summary->is_public);
	json_writer_text(json, "versioning", span_text(bucket_versioning_word(bucket->versioning)));
	print_permissions(json, known_bucket_permissions(exchange, bucket));
	json_writer_end(json, '}');
}

static void print_sums(struct json_writer *json, const struct bucket_summary *summary)
{
	json_writer_i64(json, "objects", summary->totals.files);
	json_writer_i64(json, "bytes", summary->totals.bytes);
	admin_page_print_time(json, "updated", summary->totals.updated_ms);
	json_writer_u64(json, "runs", summary->runs);
}

static void print_permissions(struct json_writer *json, unsigned permissions)
{
	static const struct {
		unsigned permission;
		const char *name;
	} names[] = {{PERMISSION_READ, "read"}, {PERMISSION_LIST, "list"},
		{PERMISSION_WRITE, "write"}, {PERMISSION_ADMIN, "admin"}};
	json_writer_array(json, "may");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if ((permissions & names[i].permission) != 0)
			json_writer_text(json, NULL, span_text(names[i].name));
	json_writer_end(json, ']');
}
