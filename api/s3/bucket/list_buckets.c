/* For the root key and for keys without grants, a page is one query of the catalog. For a key with
 * grants, the buckets that they name are looked up one by one, in order of their names. Either way
 * one bucket more than the page holds is looked for, to know whether there is a next page. */
#include "api/s3/bucket/handlers.h"

#include "api/auth/keyring.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/xml/xml_writer.h"

enum { PAGE_MAX_BUCKETS = 10000, BODY_MAX_BYTES = 16 * 1024 * 1024 };

struct listing {
	struct span prefix;
	struct span after;
	bool is_elsewhere; /* the request asks for another region, where there are none */
	uint64_t limit;    /* 1 to PAGE_MAX_BUCKETS */
	struct bucket *buckets;
	size_t count; /* one over the limit when there are more */
};

static bool read_listing(struct exchange *exchange, struct listing *listing, enum next *out_next);
static int find_buckets(struct exchange *exchange, struct listing *listing, struct error *err);
static int find_granted(struct exchange *exchange, struct listing *listing, struct error *err);
static const struct grant *next_grant(
	const struct principal *principal, const struct listing *listing, struct span last);
static bool is_wanted(const struct listing *listing, struct span name);
static enum next reply(struct exchange *exchange, const struct listing *listing);
static void write_buckets(struct exchange *exchange, struct xml_writer *xml,
	const struct listing *listing, size_t shown);

enum next list_buckets_begin(struct exchange *exchange)
{
	struct listing listing = {0};
	struct error err = {0};
	enum next next;
	ASSERT(exchange->principal != NULL); /* the route's access needs a signed request */
	if (!read_listing(exchange, &listing, &next))
		return next;
	if (find_buckets(exchange, &listing, &err) != 0)
		return exchange_fail(exchange, &err);
	return reply(exchange, &listing);
}

static bool read_listing(struct exchange *exchange, struct listing *listing, enum next *out_next)
{
	struct span token;
	struct span region;
	exchange_query(exchange, "prefix", &listing->prefix);
	listing->is_elsewhere = exchange_query(exchange, "bucket-region", &region) &&
		region.len > 0 && !span_equal_text(region, exchange->context->region);
	if (!s3_request_limit(exchange, "max-buckets", PAGE_MAX_BUCKETS, PAGE_MAX_BUCKETS,
		    &listing->limit, out_next))
		return false;
	if (listing->limit == 0) {
		*out_next = s3_error_argument(exchange, "max-buckets", span_text("0"),
			"The parameter max-buckets must be between 1 and 10000.");
		return false;
	}
	if (!exchange_query(exchange, "continuation-token", &token) ||
		s3_request_read_token(exchange, token, &listing->after))
		return true;
	*out_next = s3_error_argument(exchange, "continuation-token", token,
		"The continuation token provided is incorrect");
	return false;
}

static int find_buckets(struct exchange *exchange, struct listing *listing, struct error *err)
{
	const struct principal *const principal = exchange->principal;
	const struct span everybody = {0};
	if (listing->is_elsewhere)
		return 0;
	if (principal->grant_count > 0 && !principal->is_root)
		return find_granted(exchange, listing, err);
	const struct bucket_list_params params = {
		.owner = principal->is_root ? everybody : principal->namespace,
		.prefix = listing->prefix,
		.after = listing->after,
		.limit = listing->limit + 1};
	return bucket_list(exchange->context->store, &params, exchange->arena, &listing->buckets,
		&listing->count, err);
}

static int find_granted(struct exchange *exchange, struct listing *listing, struct error *err)
{
	const struct principal *const principal = exchange->principal;
	struct span last = {0};
	listing->buckets = arena_take_array(
		exchange->arena, principal->grant_count, sizeof(*listing->buckets));
	if (listing->buckets == NULL)
		return error_set(
			err, ERROR_NO_MEMORY, "The key has too many grants for one listing.");
	for (const struct grant *grant = next_grant(principal, listing, last); grant != NULL;
		grant = next_grant(principal, listing, last)) {
		struct error find_err = {0};
		ASSERT(listing->count < principal->grant_count);
		last = grant->bucket;
		if (bucket_find(exchange->context->store, bucket_named(last), exchange->arena,
			    &listing->buckets[listing->count], &find_err) == 0)
			listing->count++;
		else if (find_err.kind != ERROR_NO_BUCKET) {
			*err = find_err;
			return -1;
		}
		if (listing->count > listing->limit)
			break;
	}
	return 0;
}

/* The grant with the smallest name above `last`, or NULL. Grants are few and not sorted, and two of
 * them may name the same bucket. */
static const struct grant *next_grant(
	const struct principal *principal, const struct listing *listing, struct span last)
{
	const struct grant *best = NULL;
	for (size_t i = 0; i < principal->grant_count; i++) {
		const struct grant *const grant = &principal->grants[i];
		if (is_wanted(listing, grant->bucket) &&
			(last.len == 0 || span_compare(grant->bucket, last) > 0) &&
			(best == NULL || span_compare(grant->bucket, best->bucket) < 0))
			best = grant;
	}
	return best;
}

static bool is_wanted(const struct listing *listing, struct span name)
{
	return span_starts(name, listing->prefix) &&
		(listing->after.len == 0 || span_compare(name, listing->after) > 0);
}

static enum next reply(struct exchange *exchange, const struct listing *listing)
{
	const size_t shown = listing->count > listing->limit ? listing->limit : listing->count;
	struct buffer body;
	struct xml_writer xml;
	ASSERT(listing->limit > 0 && listing->count <= listing->limit + 1);
	buffer_init(&body, BODY_MAX_BYTES);
	xml_writer_begin(&xml, &body, "ListAllMyBucketsResult", true);
	xml_writer_open(&xml, "Owner");
	xml_writer_text(&xml, "ID", exchange->principal->namespace);
	xml_writer_text(&xml, "DisplayName", exchange->principal->namespace);
	xml_writer_close(&xml);
	write_buckets(exchange, &xml, listing, shown);
	if (shown < listing->count)
		xml_writer_text(&xml, "ContinuationToken",
			s3_request_make_token(exchange, listing->buckets[shown - 1].name));
	if (listing->prefix.len > 0)
		xml_writer_text(&xml, "Prefix", listing->prefix);
	xml_writer_end(&xml);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}

static void write_buckets(struct exchange *exchange, struct xml_writer *xml,
	const struct listing *listing, size_t shown)
{
	xml_writer_open(xml, "Buckets");
	for (size_t i = 0; i < shown; i++) {
		xml_writer_open(xml, "Bucket");
		xml_writer_text(xml, "Name", listing->buckets[i].name);
		xml_writer_time(xml, "CreationDate", listing->buckets[i].created_ms);
		xml_writer_text(xml, "BucketRegion", span_text(exchange->context->region));
		xml_writer_close(xml);
	}
	xml_writer_close(xml);
}
