/* A page is one snapshot of the catalog; the token is the last name of the page before, so that no state stays here between pages. */
#include "api/s3/list_objects_v2.h"

#include "api/s3/s3_error.h"
#include "api/s3/s3_request.h"
#include "api/s3/xml_writer.h"
#include "base/encode.h"
#include "storage/object.h"

enum { PAGE_MAX_KEYS = 1000, BODY_MAX_BYTES = 16 * 1024 * 1024 };

struct listing { /* what was asked, then what was found */
	struct span prefix;
	struct span delimiter;
	struct span start_after;
	struct span token;
	bool has_delimiter;
	bool has_start_after;
	bool has_token;
	bool encode_url;
	bool fetch_owner;
	uint64_t max_keys;
	struct span after;
	struct bucket bucket;
	struct object_list found;
};

static bool read_encoding(struct exchange *const exchange, struct listing *const listing, enum next *const out_next)
{
	struct span value;
	if (!exchange_query(exchange, "encoding-type", &value) || value.len == 0)
		return true;
	listing->encode_url = span_equal_nocase(value, "url");
	if (!listing->encode_url)
		*out_next = s3_error_argument(exchange, "encoding-type", value, "Invalid Encoding Method specified in Request");
	return listing->encode_url;
}

/* An empty token is a normal listing; a token wins over start-after. */
static bool read_position(struct exchange *const exchange, struct listing *const listing, enum next *const out_next)
{
	listing->has_start_after = exchange_query(exchange, "start-after", &listing->start_after);
	listing->has_token = exchange_query(exchange, "continuation-token", &listing->token);
	listing->after = listing->start_after;
	if (listing->token.len == 0)
		return true;
	if (s3_request_read_token(exchange, listing->token, &listing->after))
		return true;
	*out_next = s3_error_argument(exchange, "continuation-token", listing->token, "The continuation token provided is incorrect");
	return false;
}

static bool read_listing(struct exchange *const exchange, struct listing *const listing, enum next *const out_next)
{
	struct span owner;
	exchange_query(exchange, "prefix", &listing->prefix);
	listing->has_delimiter = exchange_query(exchange, "delimiter", &listing->delimiter);
	listing->fetch_owner = exchange_query(exchange, "fetch-owner", &owner) && span_equal_nocase(owner, "true");
	return read_encoding(exchange, listing, out_next) && read_position(exchange, listing, out_next)
		&& s3_request_limit(exchange, "max-keys", PAGE_MAX_KEYS, PAGE_MAX_KEYS, &listing->max_keys, out_next);
}

static int find_page(struct exchange *const exchange, struct listing *const listing, struct error *const err)
{
	struct store *const store = exchange->context->store;
	const struct object_list_params params = {.bucket = s3_request_bucket(exchange), .prefix = listing->prefix,
		.delimiter = listing->delimiter, .after = listing->after, .limit = listing->max_keys};
	if (bucket_find(store, params.bucket, exchange->arena, &listing->bucket, err) != 0)
		return -1;
	return params.limit == 0 ? 0 : object_list(store, &params, exchange->arena, &listing->found, err);
}

/* A name of a key, percent-encoded when that was asked for. */
static void write_name(struct xml_writer *const xml, const struct listing *const listing, const char *const element, const struct span name)
{
	if (!listing->encode_url) {
		xml_writer_text(xml, element, name);
		return;
	}
	struct buffer encoded;
	buffer_init(&encoded, 3 * name.len + 1);
	encode_percent(name, true, &encoded);
	xml_writer_text(xml, element, buffer_span(&encoded));
	buffer_release(&encoded);
}

static void write_asked(struct exchange *const exchange, struct xml_writer *const xml, const struct listing *const listing)
{
	xml_writer_text(xml, "Name", s3_request_bucket(exchange));
	write_name(xml, listing, "Prefix", listing->prefix);
	if (listing->has_start_after)
		write_name(xml, listing, "StartAfter", listing->start_after);
	if (listing->has_token)
		xml_writer_text(xml, "ContinuationToken", listing->token);
	xml_writer_u64(xml, "KeyCount", listing->found.entry_count + listing->found.prefix_count);
	xml_writer_u64(xml, "MaxKeys", listing->max_keys);
	if (listing->has_delimiter && listing->delimiter.len > 0)
		write_name(xml, listing, "Delimiter", listing->delimiter);
	if (listing->encode_url)
		xml_writer_text(xml, "EncodingType", span_text("url"));
	xml_writer_bool(xml, "IsTruncated", listing->found.truncated);
	if (listing->found.truncated)
		xml_writer_text(xml, "NextContinuationToken", s3_request_make_token(exchange, listing->found.last));
}

static void write_entry(struct xml_writer *const xml, const struct listing *const listing, const struct object_entry *const entry)
{
	xml_writer_open(xml, "Contents");
	write_name(xml, listing, "Key", entry->key);
	xml_writer_time(xml, "LastModified", entry->modified_ms);
	xml_writer_etag(xml, "ETag", entry->etag);
	xml_writer_u64(xml, "Size", entry->size);
	if (listing->fetch_owner) {
		xml_writer_open(xml, "Owner");
		xml_writer_text(xml, "ID", listing->bucket.owner);
		xml_writer_text(xml, "DisplayName", listing->bucket.owner);
		xml_writer_close(xml);
	}
	xml_writer_text(xml, "StorageClass", span_text("STANDARD"));
	xml_writer_close(xml);
}

static enum next reply(struct exchange *const exchange, const struct listing *const listing)
{
	struct buffer body;
	struct xml_writer xml;
	buffer_init(&body, BODY_MAX_BYTES);
	xml_writer_begin(&xml, &body, "ListBucketResult", true);
	write_asked(exchange, &xml, listing);
	for (size_t i = 0; i < listing->found.entry_count; i++)
		write_entry(&xml, listing, &listing->found.entries[i]);
	for (size_t i = 0; i < listing->found.prefix_count; i++) {
		xml_writer_open(&xml, "CommonPrefixes");
		write_name(&xml, listing, "Prefix", listing->found.prefixes[i]);
		xml_writer_close(&xml);
	}
	xml_writer_end(&xml);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}

enum next list_objects_v2_begin(struct exchange *const exchange)
{
	struct listing listing = {0};
	struct error err = {0};
	enum next next;
	if (!read_listing(exchange, &listing, &next))
		return next;
	if (s3_request_check_owner(exchange, &err) != 0 || find_page(exchange, &listing, &err) != 0)
		return exchange_fail(exchange, &err);
	return reply(exchange, &listing);
}
