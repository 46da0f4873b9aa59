/* A page of versions and delete markers. In a bucket that never had versioning, each object is
 * listed as its null version. A page begins after a key or, when the page before ended inside a
 * key, after one of its versions; the client sends both again. */
#include "api/s3/bucket/handlers.h"

#include "api/s3/request/list_request.h"
#include "api/s3/request/s3_error.h"
#include "storage/versions/version_list.h"

struct listing {
	struct list_request request;
	struct span key_marker;
	struct span version_marker;
	struct version_ref after_version;
	struct version_list found;
};

static bool read_markers(struct exchange *exchange, struct listing *listing, enum next *out_next);
static int find_page(struct exchange *exchange, struct listing *listing, struct error *err);
static void write_head(
	struct exchange *exchange, struct xml_writer *xml, const struct listing *listing);
static void write_entry(const struct list_request *request, struct xml_writer *xml,
	const struct version_entry *entry);

enum next list_versions_begin(struct exchange *exchange)
{
	struct listing listing = {0};
	struct error err = {0};
	struct buffer body;
	struct xml_writer xml;
	enum next next;
	if (!list_request_read(exchange, "max-keys", &listing.request, &next) ||
		!read_markers(exchange, &listing, &next))
		return next;
	if (find_page(exchange, &listing, &err) != 0)
		return exchange_fail(exchange, &err);
	buffer_init(&body, LIST_BODY_MAX_BYTES);
	xml_writer_begin(&xml, &body, "ListVersionsResult", true);
	ASSERT(listing.found.entry_count + listing.found.prefix_count <= listing.request.limit);
	write_head(exchange, &xml, &listing);
	for (size_t i = 0; i < listing.found.entry_count; i++)
		write_entry(&listing.request, &xml, &listing.found.entries[i]);
	list_request_prefixes(
		&listing.request, &xml, listing.found.prefixes, listing.found.prefix_count);
	xml_writer_end(&xml);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}

/* Clients send an empty version marker along with a key marker, which is fine. One that is not
 * empty needs a key marker, because no page could begin there otherwise. */
static bool read_markers(struct exchange *exchange, struct listing *listing, enum next *out_next)
{
	exchange_query(exchange, "key-marker", &listing->key_marker);
	exchange_query(exchange, "version-id-marker", &listing->version_marker);
	const char *fault = NULL;
	if (listing->version_marker.len > 0 && listing->key_marker.len == 0)
		fault = "A version-id marker cannot be specified without a key marker.";
	else if (listing->version_marker.len > 0 &&
		!version_ref_parse(listing->version_marker, &listing->after_version))
		fault = "Invalid version id specified";
	if (fault != NULL)
		*out_next = s3_error_argument(
			exchange, "version-id-marker", listing->version_marker, fault);
	return fault == NULL;
}

static int find_page(struct exchange *exchange, struct listing *listing, struct error *err)
{
	const struct list_request *const request = &listing->request;
	const struct version_list_params params = {.bucket = exchange_bucket(exchange),
		.prefix = request->prefix,
		.delimiter = request->delimiter,
		.after_key = listing->key_marker,
		.after_version = listing->after_version,
		.limit = request->limit};
	return params.limit == 0 ? 0
				 : version_list(exchange->context->store, &params, exchange->arena,
					   &listing->found, err);
}

/* The elements before the rows: the request's parameters, and where the next page begins. */
static void write_head(
	struct exchange *exchange, struct xml_writer *xml, const struct listing *listing)
{
	const struct list_request *const request = &listing->request;
	xml_writer_text(xml, "Name", exchange_bucket(exchange).name);
	list_request_name(request, xml, "Prefix", request->prefix);
	list_request_name(request, xml, "KeyMarker", listing->key_marker);
	xml_writer_text(xml, "VersionIdMarker", listing->version_marker);
	xml_writer_u64(xml, "MaxKeys", request->limit);
	list_request_echo(request, xml);
	xml_writer_bool(xml, "IsTruncated", listing->found.truncated);
	if (!listing->found.truncated)
		return;
	list_request_name(request, xml, "NextKeyMarker", listing->found.last_key);
	if (listing->found.last_version[0] != '\0')
		xml_writer_text(xml, "NextVersionIdMarker", span_text(listing->found.last_version));
}

static void write_entry(const struct list_request *request, struct xml_writer *xml,
	const struct version_entry *entry)
{
	xml_writer_open(xml, entry->is_marker ? "DeleteMarker" : "Version");
	list_request_name(request, xml, "Key", entry->object.key);
	xml_writer_text(xml, "VersionId", span_text(entry->version));
	xml_writer_bool(xml, "IsLatest", entry->is_latest);
	if (entry->is_marker) {
		xml_writer_time(xml, "LastModified", entry->object.modified_ms);
		list_request_owner(xml, "Owner", request->bucket.owner);
	} else {
		list_request_object(request, xml, &entry->object, true);
	}
	xml_writer_close(xml);
}
