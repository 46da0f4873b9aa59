/* One expat run keeps the path of the open elements ("/ListBucketResult/Contents/Key"). At each end
 * tag it looks the path up in ELEMENTS, which names the function that takes the element's text. The
 * reader ignores elements that the table lacks, so a server may add some. A limit that is exceeded
 * stops the parser and leaves its reason in `fault`. */
#include "client/remote/listing.h"

#include <expat.h>
#include <string.h>

#include "base/encode.h"

enum { PATH_MAX_BYTES = 256 };

struct reader {
	XML_Parser parser;
	struct arena *arena;
	struct listing listing;
	size_t room; /* entries that the array has room for */
	bool url_encoded;
	struct listing_error error;
	struct listing_entry entry; /* the one that is being read */
	struct buffer text;         /* of the innermost open element */
	char path[PATH_MAX_BYTES];
	size_t path_len;
	const char *fault; /* why the parser was stopped; NULL: it was not */
};

typedef void take_fn(struct reader *reader, struct span text);

static int read_xml(struct reader *reader, struct span xml, struct error *err);
static void listing_on_start(void *data, const XML_Char *name, const XML_Char **attributes);
static void stop(struct reader *reader, const char *fault);
static void listing_on_end(void *data, const XML_Char *name);
static void take_name(struct reader *reader, struct span text);
static void take_size(struct reader *reader, struct span text);
static void take_modified(struct reader *reader, struct span text);
static void take_etag(struct reader *reader, struct span text);
static void take_entry(struct reader *reader, struct span text);
static void take_prefix(struct reader *reader, struct span text);
static void take_truncated(struct reader *reader, struct span text);
static void take_next(struct reader *reader, struct span text);
static void take_encoding(struct reader *reader, struct span text);
static void take_code(struct reader *reader, struct span text);
static void take_message(struct reader *reader, struct span text);
static void listing_on_text(void *data, const XML_Char *text, int len);
static void listing_on_doctype(void *data, const XML_Char *name, const XML_Char *system_id,
	const XML_Char *public_id, int has_internal);
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
	if (xml.len > INT32_MAX)
		return error_set(err, ERROR_UPSTREAM, "the server's XML answer is over 2 GB");
	buffer_init(&reader->text, LISTING_TEXT_MAX_BYTES);
	reader->parser = XML_ParserCreate("UTF-8");
	ASSERT(reader->parser != NULL);
	XML_SetUserData(reader->parser, reader);
	XML_SetElementHandler(reader->parser, listing_on_start, listing_on_end);
	XML_SetCharacterDataHandler(reader->parser, listing_on_text);
	XML_SetStartDoctypeDeclHandler(reader->parser, listing_on_doctype);
	const enum XML_Status status =
		XML_Parse(reader->parser, (const char *)xml.data, (int)xml.len, 1);
	const char *const why = reader->fault != NULL
		? reader->fault
		: XML_ErrorString(XML_GetErrorCode(reader->parser));
	const unsigned line = (unsigned)XML_GetCurrentLineNumber(reader->parser);
	XML_ParserFree(reader->parser);
	buffer_release(&reader->text);
	if (status != XML_STATUS_OK)
		return error_set(err, ERROR_UPSTREAM,
			"the server's XML answer is refused at line %u: %s", line, why);
	if (arena_overflowed(reader->arena))
		return error_set(err, ERROR_TOO_LARGE,
			"the server's XML answer needs more memory than is set aside for it");
	return 0;
}

static void listing_on_start(void *data, const XML_Char *name, const XML_Char **attributes)
{
	(void)attributes;
	struct reader *const reader = data;
	const size_t len = strlen(name);
	if (reader->path_len + len + 2 > PATH_MAX_BYTES) {
		stop(reader, "it is nested too deeply");
		return;
	}
	reader->path[reader->path_len] = '/';
	memcpy(reader->path + reader->path_len + 1, name, len + 1);
	reader->path_len += len + 1;
	buffer_reset(&reader->text);
}

static void stop(struct reader *reader, const char *fault)
{
	if (reader->fault == NULL)
		reader->fault = fault;
	XML_StopParser(reader->parser, XML_FALSE);
}

static void listing_on_end(void *data, const XML_Char *name)
{
	struct reader *const reader = data;
	/* After a stop expat still reports the end of an element like <a/>, whose name is not in
	 * the path. */
	if (reader->fault != NULL)
		return;
	ASSERT(reader->path_len > strlen(name)); /* expat has matched the tags */
	if (buffer_failed(&reader->text)) {
		stop(reader, "a text in it is too long");
		return;
	}
	for (size_t i = 0; i < sizeof(ELEMENTS) / sizeof(ELEMENTS[0]); i++)
		if (strcmp(reader->path, ELEMENTS[i].path) == 0)
			ELEMENTS[i].take(reader, buffer_span(&reader->text));
	reader->path_len -= strlen(name) + 1;
	reader->path[reader->path_len] = '\0';
	buffer_reset(&reader->text);
}

static void take_name(struct reader *reader, struct span text)
{
	reader->entry.name = arena_copy(reader->arena, text);
}

static void take_size(struct reader *reader, struct span text)
{
	if (!span_parse_u64(text, &reader->entry.size))
		stop(reader, "a size is not a number");
}

static void take_modified(struct reader *reader, struct span text)
{
	reader->entry.modified = arena_copy(reader->arena, text);
}

static void take_etag(struct reader *reader, struct span text)
{
	const bool quoted = text.len >= 2 && text.data[0] == '"' && text.data[text.len - 1] == '"';
	reader->entry.etag =
		arena_copy(reader->arena, quoted ? span_slice(text, 1, text.len - 2) : text);
}

static void take_entry(struct reader *reader, struct span text)
{
	(void)text;
	struct listing *const listing = &reader->listing;
	if (listing->count == LISTING_ENTRIES_MAX) {
		stop(reader, "it lists too many entries");
		return;
	}
	if (listing->count == reader->room) {
		const size_t room = reader->room == 0 ? 64 : reader->room * 2;
		struct listing_entry *const entries =
			arena_take_array(reader->arena, room, sizeof(*entries));
		if (entries == NULL)
			return;
		if (listing->count > 0)
			memcpy(entries, listing->entries, listing->count * sizeof(*entries));
		listing->entries = entries;
		reader->room = room;
	}
	listing->entries[listing->count++] = reader->entry;
	reader->entry = (struct listing_entry){0};
}

static void take_prefix(struct reader *reader, struct span text)
{
	take_name(reader, text);
	reader->entry.is_prefix = true;
}

static void take_truncated(struct reader *reader, struct span text)
{
	reader->listing.truncated = span_equal_text(text, "true");
}

static void take_next(struct reader *reader, struct span text)
{
	reader->listing.next = arena_copy(reader->arena, text);
}

static void take_encoding(struct reader *reader, struct span text)
{
	reader->url_encoded = span_equal_text(text, "url");
}

static void take_code(struct reader *reader, struct span text)
{
	reader->error.code = arena_copy(reader->arena, text);
}

static void take_message(struct reader *reader, struct span text)
{
	reader->error.message = arena_copy(reader->arena, text);
}

static void listing_on_text(void *data, const XML_Char *text, int len)
{
	struct reader *const reader = data;
	buffer_add(&reader->text, text, (size_t)len);
}

static void listing_on_doctype(void *data, const XML_Char *name, const XML_Char *system_id,
	const XML_Char *public_id, int has_internal)
{
	(void)name;
	(void)system_id;
	(void)public_id;
	(void)has_internal;
	stop(data, "it declares a document type");
}

/* Decodes the names of an answer with encoding-type url. */
static int decode_names(struct reader *reader, struct error *err)
{
	struct buffer decoded;
	buffer_init(&decoded, LISTING_TEXT_MAX_BYTES);
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
