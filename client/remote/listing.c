/* The path of the open elements ("/ListBucketResult/Contents/Key") is kept while the answer is read.
 * At each end tag ELEMENTS names the function that takes the element's text. Elements that the
 * table lacks are ignored, so a server may add some. */
#include "client/remote/listing.h"

#include <string.h>

#include "base/encode.h"
#include "base/format/xml_reader.h"

enum { PATH_MAX_BYTES = 256 };

struct reader {
	struct arena *arena;
	struct listing listing;
	size_t room; /* entries that the array has room for */
	bool url_encoded;
	struct listing_error error;
	struct listing_entry entry; /* the one that is being read */
	char path[PATH_MAX_BYTES];
	size_t path_len;
};

typedef int take_fn(struct reader *reader, struct span text, struct error *err);

static int read_xml(struct reader *reader, struct span xml, struct error *err);
static int listing_on_open(void *owner, size_t depth, struct span name, struct error *err);
static int listing_on_close(
	void *owner, size_t depth, struct span name, struct span text, struct error *err);
static int take_name(struct reader *reader, struct span text, struct error *err);
static int take_size(struct reader *reader, struct span text, struct error *err);
static int take_modified(struct reader *reader, struct span text, struct error *err);
static int take_etag(struct reader *reader, struct span text, struct error *err);
static int take_entry(struct reader *reader, struct span text, struct error *err);
static int take_prefix(struct reader *reader, struct span text, struct error *err);
static int take_truncated(struct reader *reader, struct span text, struct error *err);
static int take_next(struct reader *reader, struct span text, struct error *err);
static int take_encoding(struct reader *reader, struct span text, struct error *err);
static int take_code(struct reader *reader, struct span text, struct error *err);
static int take_message(struct reader *reader, struct span text, struct error *err);
static int decode_names(struct reader *reader, struct error *err);

static const struct {
	const char *path;
	take_fn *take;
} ELEMENTS[] = {
	{"/ListBucketResult/Contents/Key", take_name},
	{"/ListBucketResult/Contents/Size", take_size},
	{"/ListBucketResult/Contents/LastModified", take_modified},
	{"/ListBucketResult/Contents/ETag", take_etag},
	{"/ListBucketResult/Contents", take_entry},
	{"/ListBucketResult/CommonPrefixes/Prefix", take_prefix},
	{"/ListBucketResult/CommonPrefixes", take_entry},
	{"/ListBucketResult/IsTruncated", take_truncated},
	{"/ListBucketResult/NextContinuationToken", take_next},
	{"/ListBucketResult/EncodingType", take_encoding},
	{"/ListAllMyBucketsResult/Buckets/Bucket/Name", take_name},
	{"/ListAllMyBucketsResult/Buckets/Bucket/CreationDate", take_modified},
	{"/ListAllMyBucketsResult/Buckets/Bucket", take_entry},
	{"/ListAllMyBucketsResult/ContinuationToken", take_next},
	{"/Error/Code", take_code},
	{"/Error/Message", take_message},
};

int listing_parse(struct span xml, struct arena *arena, struct listing *out, struct error *err)
{
	struct reader reader = {.arena = arena};
	if (read_xml(&reader, xml, err) != 0)
		return -1;
	if (reader.url_encoded && decode_names(&reader, err) != 0)
		return -1;
	*out = reader.listing;
	return 0;
}

bool listing_parse_error(struct span xml, struct arena *arena, struct listing_error *out)
{
	struct reader reader = {.arena = arena};
	struct error ignored = {0};
	if (xml.len == 0 || read_xml(&reader, xml, &ignored) != 0 || reader.error.code.len == 0)
		return false;
	*out = reader.error;
	return true;
}

static int read_xml(struct reader *reader, struct span xml, struct error *err)
{
	static const struct xml_reader_events events = {
		.open = listing_on_open, .close = listing_on_close};
	struct error failure = {0};
	if (xml_reader_parse(xml, &events, reader, &failure) != 0)
		return error_set(err, ERROR_UPSTREAM, "the server's XML answer is refused: %s",
			failure.text);
	if (arena_overflowed(reader->arena))
		return error_set(err, ERROR_TOO_LARGE,
			"the server's XML answer needs more memory than is set aside for it");
	return 0;
}

static int listing_on_open(void *owner, size_t depth, struct span name, struct error *err)
{
	struct reader *const reader = owner;
	(void)depth;
	if (name.len + 2 > PATH_MAX_BYTES - reader->path_len)
		return error_set(err, ERROR_UPSTREAM,
			"the names of its open elements are over %d bytes", PATH_MAX_BYTES);
	reader->path[reader->path_len] = '/';
	memcpy(reader->path + reader->path_len + 1, name.data, name.len);
	reader->path_len += name.len + 1;
	reader->path[reader->path_len] = '\0';
	return 0;
}

static int listing_on_close(
	void *owner, size_t depth, struct span name, struct span text, struct error *err)
{
	struct reader *const reader = owner;
	int result = 0;
	(void)depth;
	ASSERT(reader->path_len > name.len); /* the reader has matched the tags */
	for (size_t i = 0; i < sizeof(ELEMENTS) / sizeof(ELEMENTS[0]) && result == 0; i++)
		if (strcmp(reader->path, ELEMENTS[i].path) == 0)
			result = ELEMENTS[i].take(reader, text, err);
	reader->path_len -= name.len + 1;
	reader->path[reader->path_len] = '\0';
	return result;
}

static int take_name(struct reader *reader, struct span text, struct error *err)
{
	(void)err;
	reader->entry.name = arena_copy(reader->arena, text);
	return 0;
}

static int take_size(struct reader *reader, struct span text, struct error *err)
{
	if (!span_parse_u64(text, &reader->entry.size))
		return error_set(err, ERROR_UPSTREAM, "a size in it is not a number");
	return 0;
}

static int take_modified(struct reader *reader, struct span text, struct error *err)
{
	(void)err;
	reader->entry.modified = arena_copy(reader->arena, text);
	return 0;
}

static int take_etag(struct reader *reader, struct span text, struct error *err)
{
	(void)err;
	const bool quoted = text.len >= 2 && text.data[0] == '"' && text.data[text.len - 1] == '"';
	reader->entry.etag =
		arena_copy(reader->arena, quoted ? span_slice(text, 1, text.len - 2) : text);
	return 0;
}

static int take_entry(struct reader *reader, struct span text, struct error *err)
{
	(void)text;
	struct listing *const listing = &reader->listing;
	if (listing->count == LISTING_ENTRIES_MAX)
		return error_set(
			err, ERROR_UPSTREAM, "it lists over %d entries", LISTING_ENTRIES_MAX);
	if (listing->count == reader->room) {
		const size_t room = reader->room == 0 ? 64 : reader->room * 2;
		struct listing_entry *const entries =
			arena_take_array(reader->arena, room, sizeof(*entries));
		if (entries == NULL)
			return 0; /* read_xml sees that the arena is full */
		if (listing->count > 0)
			memcpy(entries, listing->entries, listing->count * sizeof(*entries));
		listing->entries = entries;
		reader->room = room;
	}
	listing->entries[listing->count++] = reader->entry;
	reader->entry = (struct listing_entry){0};
	return 0;
}

static int take_prefix(struct reader *reader, struct span text, struct error *err)
{
	reader->entry.is_prefix = true;
	return take_name(reader, text, err);
}

static int take_truncated(struct reader *reader, struct span text, struct error *err)
{
	(void)err;
	reader->listing.truncated = span_equal_text(text, "true");
	return 0;
}

static int take_next(struct reader *reader, struct span text, struct error *err)
{
	(void)err;
	reader->listing.next = arena_copy(reader->arena, text);
	return 0;
}

static int take_encoding(struct reader *reader, struct span text, struct error *err)
{
	(void)err;
	reader->url_encoded = span_equal_text(text, "url");
	return 0;
}

static int take_code(struct reader *reader, struct span text, struct error *err)
{
	(void)err;
	reader->error.code = arena_copy(reader->arena, text);
	return 0;
}

static int take_message(struct reader *reader, struct span text, struct error *err)
{
	(void)err;
	reader->error.message = arena_copy(reader->arena, text);
	return 0;
}

/* Decodes the names of an answer with encoding-type url. */
static int decode_names(struct reader *reader, struct error *err)
{
	struct buffer decoded;
	buffer_init(&decoded, XML_READER_TEXT_MAX_BYTES);
	int result = 0;
	for (size_t i = 0; i < reader->listing.count && result == 0; i++) {
		struct listing_entry *const entry = &reader->listing.entries[i];
		buffer_reset(&decoded);
		if (!decode_percent(entry->name, true, &decoded) || buffer_failed(&decoded))
			result = error_set(err, ERROR_UPSTREAM,
				"the server's listing has a malformed percent-encoded key");
		entry->name = arena_copy(reader->arena, buffer_span(&decoded));
	}
	buffer_release(&decoded);
	if (result == 0 && arena_overflowed(reader->arena))
		result = error_set(err, ERROR_TOO_LARGE,
			"the server's XML answer needs more memory than is set aside for it");
	return result;
}
