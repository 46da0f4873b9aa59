/* One kind of listing differs from the other in the names of elements and parameters, which stand
 * in a table. Keys of objects are asked for in percent-encoding, because XML cannot have all
 * characters; those of uploads are not, because Ceph encodes them without saying so, and not its
 * markers. */
#include "base/net/s3/s3_listing.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/encode.h"
#include "base/format/xml_reader.h"
#include "base/memory.h"
#include "base/net/s3/s3_client_internal.h"

enum { MARKER_MAX_BYTES = 4096, PAGE_TEXT_MAX_BYTES = 32 * 1024 * 1024 };

struct s3_entry {
	size_t key; /* where it begins in the page's texts, as does the id */
	size_t id;
	uint64_t bytes;
	int64_t time_ms;
	bool has_key;
	bool has_id;
	bool has_bytes;
	bool has_time;
};

struct s3_page {
	struct s3_listing *listing;
	struct buffer texts; /* of the entries, each with a NUL at its end */
	struct s3_entry *entries;
	size_t count;
	size_t capacity;
	struct s3_entry entry; /* the one that is being read */
	bool is_encoded;
	bool is_truncated;
	char marker[MARKER_MAX_BYTES]; /* where the next page begins, as the service tells it */
	char id_marker[MARKER_MAX_BYTES];
};

struct s3_listing_kind {
	const char *root;
	const char *entry;
	const char *marker;
	const char *id_marker; /* NULL: there is none */
	void (*add_query)(const struct s3_listing *listing, struct buffer *out);
	bool (*is_whole)(const struct s3_entry *entry);
	int (*give)(const struct s3_listing *listing, const struct s3_page *page,
		const struct s3_entry *entry, const char *name, struct error *err);
};

struct s3_listing {
	const struct s3_listing_kind *kind;
	struct s3_client *client;
	const char *begin;
	s3_take_object_fn *take_object; /* the one of its kind */
	s3_take_unfinished_fn *take_unfinished;
	void *taker;
	char marker[MARKER_MAX_BYTES]; /* of the page that is asked for; "": the first */
	char id_marker[MARKER_MAX_BYTES];
};

static void s3_listing_add_object_query(const struct s3_listing *listing, struct buffer *out);
static bool s3_listing_is_object(const struct s3_entry *entry);
static int s3_listing_give_object(const struct s3_listing *listing, const struct s3_page *page,
	const struct s3_entry *entry, const char *name, struct error *err);
static void s3_listing_add_upload_query(const struct s3_listing *listing, struct buffer *out);
static bool s3_listing_is_upload(const struct s3_entry *entry);
static int s3_listing_give_upload(const struct s3_listing *listing, const struct s3_page *page,
	const struct s3_entry *entry, const char *name, struct error *err);
static int run(struct s3_listing *listing, struct error *err);
static int run_page(struct s3_listing *listing, struct s3_page *page, struct error *err);
static void add_parameter(struct buffer *out, const char *name, const char *value);
static void add_prefix(const struct s3_listing *listing, struct buffer *out);
static int parse_page(struct span xml, struct s3_page *page, struct error *err);
static int s3_listing_open_element(void *owner, size_t depth, struct span name, struct error *err);
static int s3_listing_close_element(
	void *owner, size_t depth, struct span name, struct span text, struct error *err);
static void take_entry_text(struct s3_page *page, struct span name, struct span text);
static size_t keep_text(struct s3_page *page, struct span text);
static int end_entry(struct s3_page *page, struct error *err);
static int take_page_text(
	struct s3_page *page, struct span name, struct span text, struct error *err);
static int keep_marker(char marker[MARKER_MAX_BYTES], struct span text, struct error *err);
static int give_page(const struct s3_page *page, struct error *err);
static int decode_key(
	const struct s3_page *page, const char *key, struct buffer *out, struct error *err);
static int move_on(struct s3_listing *listing, const struct s3_page *page, struct error *err);

static const struct s3_listing_kind objects = {.root = "ListBucketResult",
	.entry = "Contents",
	.marker = "NextContinuationToken",
	.add_query = s3_listing_add_object_query,
	.is_whole = s3_listing_is_object,
	.give = s3_listing_give_object};
static const struct s3_listing_kind uploads = {.root = "ListMultipartUploadsResult",
	.entry = "Upload",
	.marker = "NextKeyMarker",
	.id_marker = "NextUploadIdMarker",
	.add_query = s3_listing_add_upload_query,
	.is_whole = s3_listing_is_upload,
	.give = s3_listing_give_upload};

int s3_listing_objects(struct s3_client *client, const char *begin, s3_take_object_fn *take,
	void *taker, struct error *err)
{
	struct s3_listing *listing = memory_new(sizeof(*listing));
	*listing = (struct s3_listing){.kind = &objects,
		.client = client,
		.begin = begin,
		.take_object = take,
		.taker = taker};
	const int result = run(listing, err);
	free(listing);
	return result;
}

int s3_listing_uploads(struct s3_client *client, const char *begin, s3_take_unfinished_fn *take,
	void *taker, struct error *err)
{
	struct s3_listing *listing = memory_new(sizeof(*listing));
	*listing = (struct s3_listing){.kind = &uploads,
		.client = client,
		.begin = begin,
		.take_unfinished = take,
		.taker = taker};
	const int result = run(listing, err);
	free(listing);
	return result;
}

/* The parameters stand in the order of their names, as a signature needs them. */
static void s3_listing_add_object_query(const struct s3_listing *listing, struct buffer *out)
{
	buffer_add_byte(out, '?');
	if (listing->marker[0] != '\0')
		add_parameter(out, "continuation-token=", listing->marker);
	buffer_format(out,
		"encoding-type=url&list-type=2&max-keys=%u&prefix=", listing->client->options.page);
	add_prefix(listing, out);
}

static void add_parameter(struct buffer *out, const char *name, const char *value)
{
	buffer_add_text(out, name);
	encode_percent(span_text(value), false, out);
	buffer_add_byte(out, '&');
}

static void add_prefix(const struct s3_listing *listing, struct buffer *out)
{
	encode_percent(span_text(listing->client->prefix), false, out);
	encode_percent(span_text(listing->begin), false, out);
}

static bool s3_listing_is_object(const struct s3_entry *entry)
{
	return entry->has_key && entry->has_bytes && entry->has_time;
}

static int s3_listing_give_object(const struct s3_listing *listing, const struct s3_page *page,
	const struct s3_entry *entry, const char *name, struct error *err)
{
	const struct s3_object object = {
		.name = name, .bytes = entry->bytes, .changed_ms = entry->time_ms};
	(void)page;
	return listing->take_object(listing->taker, &object, err);
}

static void s3_listing_add_upload_query(const struct s3_listing *listing, struct buffer *out)
{
	buffer_add_byte(out, '?');
	if (listing->marker[0] != '\0')
		add_parameter(out, "key-marker=", listing->marker);
	buffer_format(out, "max-uploads=%u&prefix=", listing->client->options.page);
	add_prefix(listing, out);
	buffer_add_byte(out, '&');
	if (listing->id_marker[0] != '\0')
		add_parameter(out, "upload-id-marker=", listing->id_marker);
	buffer_add_text(out, "uploads=");
}

static bool s3_listing_is_upload(const struct s3_entry *entry)
{
	return entry->has_key && entry->has_id && entry->has_time;
}

static int s3_listing_give_upload(const struct s3_listing *listing, const struct s3_page *page,
	const struct s3_entry *entry, const char *name, struct error *err)
{
	const struct s3_unfinished unfinished = {.name = name,
		.id = (const char *)page->texts.data + entry->id,
		.initiated_ms = entry->time_ms};
	return listing->take_unfinished(listing->taker, &unfinished, err);
}

static int run(struct s3_listing *listing, struct error *err)
{
	struct s3_page *page = memory_new(sizeof(*page));
	int result;
	do {
		*page = (struct s3_page){.listing = listing};
		buffer_init(&page->texts, PAGE_TEXT_MAX_BYTES);
		result = run_page(listing, page, err);
		buffer_release(&page->texts);
		free(page->entries);
	} while (result == 0 && page->is_truncated);
	free(page);
	return result;
}

static int run_page(struct s3_listing *listing, struct s3_page *page, struct error *err)
{
	struct s3_request request = {.method = "GET"};
	struct s3_answer answer;
	struct buffer target;
	buffer_init(&target, S3_TARGET_MAX_BYTES);
	buffer_add_text(&target, listing->client->bucket_path);
	listing->kind->add_query(listing, &target);
	request.target = buffer_text(&target);
	int result = buffer_check(&target, "the target of a listing", err);
	answer.response = (struct http_response){.status = 0};
	if (result == 0)
		result = s3_sender_send(listing->client, &request, &answer, err);
	if (result == 0)
		result = parse_page(buffer_span(&answer.response.body), page, err);
	http_response_release(&answer.response); /* a page may be large, and takers slow */
	buffer_release(&target);
	if (result == 0)
		result = give_page(page, err);
	return result == 0 ? move_on(listing, page, err) : -1;
}

static int parse_page(struct span xml, struct s3_page *page, struct error *err)
{
	static const struct xml_reader_events events = {
		.open = s3_listing_open_element, .close = s3_listing_close_element};
	struct error why;
	if (xml_reader_parse(xml, &events, page, &why) == 0)
		return buffer_check(&page->texts, "a page of a listing of the S3 service", err);
	return error_set(err, ERROR_UPSTREAM,
		"The S3 service answered with a listing that makes no sense: %s", why.text);
}

static int s3_listing_open_element(void *owner, size_t depth, struct span name, struct error *err)
{
	struct s3_page *page = owner;
	const char *root = page->listing->kind->root;
	if (depth == 2)
		page->entry = (struct s3_entry){.bytes = 0};
	return depth > 1 || span_equal_text(name, root)
		? 0
		: error_set(err, ERROR_UPSTREAM, "its outermost element is not %s.", root);
}

static int s3_listing_close_element(
	void *owner, size_t depth, struct span name, struct span text, struct error *err)
{
	struct s3_page *page = owner;
	if (depth == 3)
		take_entry_text(page, name, text);
	if (depth == 2 && span_equal_text(name, page->listing->kind->entry))
		return end_entry(page, err);
	return depth == 2 ? take_page_text(page, name, text, err) : 0;
}

static void take_entry_text(struct s3_page *page, struct span name, struct span text)
{
	struct s3_entry *entry = &page->entry;
	if (span_equal_text(name, "Key")) {
		entry->key = keep_text(page, text);
		entry->has_key = text.len > 0;
	} else if (span_equal_text(name, "UploadId")) {
		entry->id = keep_text(page, text);
		entry->has_id = text.len > 0;
	} else if (span_equal_text(name, "Size")) {
		entry->has_bytes = span_parse_u64(text, &entry->bytes);
	} else if (span_equal_text(name, "LastModified") || span_equal_text(name, "Initiated")) {
		entry->has_time = clock_parse_http(text, &entry->time_ms);
	}
}

/* XML has no NUL. */
static size_t keep_text(struct s3_page *page, struct span text)
{
	const size_t begin = page->texts.len;
	buffer_add_span(&page->texts, text);
	buffer_add_byte(&page->texts, '\0');
	return begin;
}

static int end_entry(struct s3_page *page, struct error *err)
{
	if (!page->listing->kind->is_whole(&page->entry))
		return error_set(err, ERROR_UPSTREAM,
			"an entry lacks its key, size, id or time, or they cannot be read.");
	page->entries = memory_make_room(
		page->entries, page->count, &page->capacity, sizeof(*page->entries));
	page->entries[page->count++] = page->entry;
	return 0;
}

static int take_page_text(
	struct s3_page *page, struct span name, struct span text, struct error *err)
{
	const struct s3_listing_kind *kind = page->listing->kind;
	if (span_equal_text(name, "IsTruncated"))
		page->is_truncated = span_equal_text(text, "true");
	else if (span_equal_text(name, "EncodingType"))
		page->is_encoded = span_equal_text(text, "url");
	else if (span_equal_text(name, kind->marker))
		return keep_marker(page->marker, text, err);
	else if (kind->id_marker != NULL && span_equal_text(name, kind->id_marker))
		return keep_marker(page->id_marker, text, err);
	return 0;
}

static int keep_marker(char marker[MARKER_MAX_BYTES], struct span text, struct error *err)
{
	if (text.len >= MARKER_MAX_BYTES)
		return error_set(err, ERROR_UPSTREAM, "its marker has %zu bytes.", text.len);
	memcpy(marker, text.data, text.len);
	marker[text.len] = '\0';
	return 0;
}

/* What does not begin as it was asked for is left out, as is a key with a NUL. */
static int give_page(const struct s3_page *page, struct error *err)
{
	const struct s3_listing *listing = page->listing;
	const char *prefix = listing->client->prefix;
	struct buffer key;
	int result = 0;
	buffer_init(&key, XML_READER_TEXT_MAX_BYTES);
	for (size_t i = 0; result == 0 && i < page->count; i++) {
		const char *text = (const char *)page->texts.data + page->entries[i].key;
		buffer_reset(&key);
		result = decode_key(page, text, &key, err);
		const char *name = buffer_text(&key) + strlen(prefix);
		const bool is_meant = result == 0 && strlen(buffer_text(&key)) == key.len &&
			strncmp(buffer_text(&key), prefix, strlen(prefix)) == 0 &&
			strncmp(name, listing->begin, strlen(listing->begin)) == 0;
		if (is_meant)
			result = listing->kind->give(listing, page, &page->entries[i], name, err);
	}
	buffer_release(&key);
	return result;
}

static int decode_key(
	const struct s3_page *page, const char *key, struct buffer *out, struct error *err)
{
	if (!page->is_encoded)
		buffer_add_text(out, key);
	else if (!decode_percent(span_text(key), true, out))
		return error_set(err, ERROR_UPSTREAM,
			"The S3 service answered with a listing whose key \"%.200s\" is not percent-encoded.",
			key);
	return 0;
}

/* A service that goes round in circles is left. */
static int move_on(struct s3_listing *listing, const struct s3_page *page, struct error *err)
{
	struct buffer marker;
	int result = 0;
	if (!page->is_truncated)
		return 0;
	buffer_init(&marker, MARKER_MAX_BYTES);
	/* a token is nothing that has an encoding, a key is */
	if (listing->kind->id_marker == NULL)
		buffer_add_text(&marker, page->marker);
	else
		result = decode_key(page, page->marker, &marker, err);
	if (result == 0 &&
		(marker.len == 0 ||
			(strcmp(buffer_text(&marker), listing->marker) == 0 &&
				strcmp(page->id_marker, listing->id_marker) == 0)))
		result = error_set(err, ERROR_UPSTREAM,
			"The S3 service answered with a page of a listing that does not tell where the next one begins.");
	if (result == 0) {
		memcpy(listing->marker, buffer_text(&marker), strlen(buffer_text(&marker)) + 1);
		memcpy(listing->id_marker, page->id_marker, strlen(page->id_marker) + 1);
	}
	buffer_release(&marker);
	return result;
}
