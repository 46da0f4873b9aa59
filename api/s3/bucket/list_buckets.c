/* One bucket more than the page holds is looked for, to know whether there is a next page. */
#include "api/s3/bucket/handlers.h"

#include "api/auth/known_buckets.h"
#include "api/exchange/principal.h"
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
	if (listing->is_elsewhere)
		return 0;
	const struct known_buckets_params params = {
		.prefix = listing->prefix, .after = listing->after, .limit = listing->limit + 1};
	return known_buckets_list(exchange, &params, &listing->buckets, &listing->count, err);
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
