/* A page is one snapshot of the catalog. The next page begins after the last name of this one,
 * which the client sends again, so the server keeps no state between pages. Both versions share
 * everything but the elements that say where a page begins and ends. */
#include "api/s3/bucket/handlers.h"

#include "api/objects/view_wait.h"
#include "api/s3/request/list_request.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"
#include "storage/objects/object_list.h"

struct listing { /* the request, then what was found */
	struct list_request request;
	struct span marker;      /* version 1 */
	struct span start_after; /* version 2 */
	struct span token;       /* version 2 */
	bool has_start_after;
	bool has_token;
	bool with_owner;
	struct span after; /* the page begins after this name */
	struct object_list found;
};

static int find_page(struct exchange *exchange, struct listing *listing, struct error *err);
static enum next reply(struct exchange *exchange, const struct listing *listing,
	void (*write_position)(
		struct exchange *exchange, struct xml_writer *xml, const struct listing *listing));
static void list_objects_write_marker(
	struct exchange *exchange, struct xml_writer *xml, const struct listing *listing);
static bool read_token(struct exchange *exchange, struct listing *listing, enum next *out_next);
static void list_objects_write_token(
	struct exchange *exchange, struct xml_writer *xml, const struct listing *listing);

enum next list_objects_begin(struct exchange *exchange)
{
	struct listing listing = {.with_owner = true};
	struct error err = {0};
	enum next next;
	if (!list_request_read(exchange, "max-keys", &listing.request, &next))
		return next;
	exchange_query(exchange, "marker", &listing.marker);
	listing.after = listing.marker;
	return find_page(exchange, &listing, &err) == 0
		? reply(exchange, &listing, list_objects_write_marker)
		: exchange_fail(exchange, &err);
}

enum next list_objects_v2_begin(struct exchange *exchange)
{
	struct listing listing = {0};
	struct error err = {0};
	struct span owner;
	enum next next;
	if (!list_request_read(exchange, "max-keys", &listing.request, &next) ||
		!read_token(exchange, &listing, &next))
		return next;
	listing.with_owner =
		exchange_query(exchange, "fetch-owner", &owner) && span_equal_nocase(owner, "true");
	return find_page(exchange, &listing, &err) == 0
		? reply(exchange, &listing, list_objects_write_token)
		: exchange_fail(exchange, &err);
}

static int find_page(struct exchange *exchange, struct listing *listing, struct error *err)
{
	const struct list_request *const request = &listing->request;
	const struct object_list_params params = {.bucket = exchange_bucket(exchange),
		.prefix = request->prefix,
		.delimiter = request->delimiter,
		.after = listing->after,
		.limit = request->limit};
	if (params.limit == 0)
		return 0;
	if (view_wait_tell(exchange, params.bucket, params.prefix, err) != 0)
		return -1;
	return object_list(
		exchange->context->store, &params, exchange->arena, &listing->found, err);
}

static enum next reply(struct exchange *exchange, const struct listing *listing,
	void (*write_position)(
		struct exchange *exchange, struct xml_writer *xml, const struct listing *listing))
{
	const struct list_request *const request = &listing->request;
	struct buffer body;
	struct xml_writer xml;
	ASSERT(listing->found.entry_count + listing->found.prefix_count <= request->limit);
	buffer_init(&body, LIST_BODY_MAX_BYTES);
	xml_writer_begin(&xml, &body, "ListBucketResult", true);
	xml_writer_text(&xml, "Name", exchange_bucket(exchange).name);
	list_request_name(request, &xml, "Prefix", request->prefix);
	write_position(exchange, &xml, listing);
	xml_writer_u64(&xml, "MaxKeys", request->limit);
	list_request_echo(request, &xml);
	xml_writer_bool(&xml, "IsTruncated", listing->found.truncated);
	for (size_t i = 0; i < listing->found.entry_count; i++) {
		xml_writer_open(&xml, "Contents");
		list_request_name(request, &xml, "Key", listing->found.entries[i].key);
		list_request_object(request, &xml, &listing->found.entries[i], listing->with_owner);
		xml_writer_close(&xml);
	}
	list_request_prefixes(request, &xml, listing->found.prefixes, listing->found.prefix_count);
	xml_writer_end(&xml);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}

/* Clients of version 1 continue from the last key, which they see in the page. With a delimiter the
 * page may end with a prefix instead, so the reply has NextMarker. */
static void list_objects_write_marker(
	struct exchange *exchange, struct xml_writer *xml, const struct listing *listing)
{
	(void)exchange;
	list_request_name(&listing->request, xml, "Marker", listing->marker);
	if (listing->found.truncated && listing->request.delimiter.len > 0)
		list_request_name(&listing->request, xml, "NextMarker", listing->found.last);
}

/* An empty token asks for the first page. Any other goes before start-after. */
static bool read_token(struct exchange *exchange, struct listing *listing, enum next *out_next)
{
	listing->has_start_after = exchange_query(exchange, "start-after", &listing->start_after);
	listing->has_token = exchange_query(exchange, "continuation-token", &listing->token);
	listing->after = listing->start_after;
	if (listing->token.len == 0 ||
		s3_request_read_token(exchange, listing->token, &listing->after))
		return true;
	*out_next = s3_error_argument(exchange, "continuation-token", listing->token,
		"The continuation token provided is incorrect");
	return false;
}

static void list_objects_write_token(
	struct exchange *exchange, struct xml_writer *xml, const struct listing *listing)
{
	if (listing->has_start_after)
		list_request_name(&listing->request, xml, "StartAfter", listing->start_after);
	if (listing->has_token)
		xml_writer_text(xml, "ContinuationToken", listing->token);
	if (listing->found.truncated)
		xml_writer_text(xml, "NextContinuationToken",
			s3_request_make_token(exchange, listing->found.last));
	xml_writer_u64(xml, "KeyCount", listing->found.entry_count + listing->found.prefix_count);
}
