#include "base/net/s3/s3_page.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/encode.h"
#include "base/format/xml_reader.h"
#include "base/memory.h"

enum { TEXTS_MAX_BYTES = 64 * 1024 * 1024 };

static int s3_page_open_element(void *owner, size_t depth, struct span name, struct error *err);
static int s3_page_close_element(
	void *owner, size_t depth, struct span name, struct span text, struct error *err);
static void take_entry_text(struct s3_page *page, struct span name, struct span text);
static size_t keep_text(struct buffer *texts, struct span text);
static int end_entry(struct s3_page *page, struct error *err);
static int take_page_text(
	struct s3_page *page, struct span name, struct span text, struct error *err);
static int keep_marker(char marker[S3_MARKER_MAX_BYTES], struct span text, struct error *err);
static int finish(struct s3_page *page, struct error *err);
static int decode_keys(struct s3_page *page, struct error *err);
static int decode_marker(struct s3_page *page, struct error *err);

static const struct {
	const char *root;
	const char *entry;
	const char *time;
	const char *marker;
	const char *id_marker; /* NULL: there is none */
} kinds[] = {
	[S3_PAGE_OBJECTS] = {.root = "ListBucketResult",
		.entry = "Contents",
		.time = "LastModified",
		.marker = "NextContinuationToken"},
	[S3_PAGE_UPLOADS] = {.root = "ListMultipartUploadsResult",
		.entry = "Upload",
		.time = "Initiated",
		.marker = "NextKeyMarker",
		.id_marker = "NextUploadIdMarker"},
};

int s3_page_parse(struct s3_page *page, enum s3_page_kind kind, struct span xml, struct error *err)
{
	static const struct xml_reader_events events = {
		.open = s3_page_open_element, .close = s3_page_close_element};
	struct error why;
	*page = (struct s3_page){.kind = kind};
	buffer_init(&page->texts, TEXTS_MAX_BYTES);
	if (xml_reader_parse(xml, &events, page, &why) == 0 && finish(page, &why) == 0)
		return 0;
	return error_set(err, ERROR_UPSTREAM,
		"The S3 service answered with a listing that makes no sense: %s", why.text);
}

void s3_page_release(struct s3_page *page)
{
	buffer_release(&page->texts);
	free(page->entries);
	page->entries = NULL;
}

const char *s3_page_text(const struct s3_page *page, size_t at)
{
	ASSERT(at < page->texts.len);
	return (const char *)page->texts.data + at;
}

static int s3_page_open_element(void *owner, size_t depth, struct span name, struct error *err)
{
	struct s3_page *page = owner;
	const char *root = kinds[page->kind].root;
	if (depth == 2)
		page->entry = (struct s3_entry){.bytes = 0};
	return depth > 1 || span_equal_text(name, root)
		? 0
		: error_set(err, ERROR_UPSTREAM, "its outermost element is not %s.", root);
}

static int s3_page_close_element(
	void *owner, size_t depth, struct span name, struct span text, struct error *err)
{
	struct s3_page *page = owner;
	if (depth == 3)
		take_entry_text(page, name, text);
	if (depth == 2 && span_equal_text(name, kinds[page->kind].entry))
		return end_entry(page, err);
	return depth == 2 ? take_page_text(page, name, text, err) : 0;
}

static void take_entry_text(struct s3_page *page, struct span name, struct span text)
{
	struct s3_entry *entry = &page->entry;
	if (span_equal_text(name, "Key")) {
		entry->key = keep_text(&page->texts, text);
		entry->has_key = text.len > 0;
	} else if (span_equal_text(name, "UploadId")) {
		entry->id = keep_text(&page->texts, text);
		entry->has_id = text.len > 0;
	} else if (span_equal_text(name, "Size")) {
		entry->has_bytes = span_parse_u64(text, &entry->bytes);
	} else if (span_equal_text(name, kinds[page->kind].time)) {
		entry->has_time = clock_parse_http(text, &entry->time_ms);
	}
}

/* XML has no NUL; what is decoded may. */
static size_t keep_text(struct buffer *texts, struct span text)
{
	const size_t begin = texts->len;
	buffer_add_span(texts, text);
	buffer_add_byte(texts, '\0');
	return begin;
}

static int end_entry(struct s3_page *page, struct error *err)
{
	const struct s3_entry *entry = &page->entry;
	const bool is_whole = entry->has_key && entry->has_time &&
		(page->kind == S3_PAGE_OBJECTS ? entry->has_bytes : entry->has_id);
	if (!is_whole)
		return error_set(err, ERROR_UPSTREAM,
			"an entry lacks its key, time, size or id, or they cannot be read.");
	page->entries = memory_make_room(
		page->entries, page->count, &page->capacity, sizeof(*page->entries));
	page->entries[page->count++] = *entry;
	return 0;
}

static int take_page_text(
	struct s3_page *page, struct span name, struct span text, struct error *err)
{
	const char *id_marker = kinds[page->kind].id_marker;
	if (span_equal_text(name, "IsTruncated"))
		page->is_truncated = span_equal_text(text, "true");
	else if (span_equal_text(name, "EncodingType"))
		page->is_encoded = span_equal_text(text, "url");
	else if (span_equal_text(name, kinds[page->kind].marker))
		return keep_marker(page->marker, text, err);
	else if (id_marker != NULL && span_equal_text(name, id_marker))
		return keep_marker(page->id_marker, text, err);
	return 0;
}

static int keep_marker(char marker[S3_MARKER_MAX_BYTES], struct span text, struct error *err)
{
	if (text.len >= S3_MARKER_MAX_BYTES)
		return error_set(err, ERROR_UPSTREAM, "its marker has %zu bytes.", text.len);
	if (text.len > 0)
		memcpy(marker, text.data, text.len);
	marker[text.len] = '\0';
	return 0;
}

/* What follows on the last element: whether keys are encoded may stand anywhere. A token is nothing
 * that has an encoding; a key is. */
static int finish(struct s3_page *page, struct error *err)
{
	if (page->is_encoded &&
		(decode_keys(page, err) != 0 ||
			(page->kind == S3_PAGE_UPLOADS && decode_marker(page, err) != 0)))
		return -1;
	if (page->is_truncated && page->marker[0] == '\0')
		return error_set(
			err, ERROR_UPSTREAM, "it does not tell where the next page begins.");
	return buffer_check(&page->texts, "its text", err);
}

static int decode_keys(struct s3_page *page, struct error *err)
{
	struct buffer decoded;
	int result = 0;
	buffer_init(&decoded, TEXTS_MAX_BYTES);
	for (size_t i = 0; result == 0 && i < page->count; i++) {
		struct s3_entry *entry = &page->entries[i];
		const struct span key = span_text(s3_page_text(page, entry->key));
		entry->key = decoded.len;
		if (!decode_percent(key, true, &decoded))
			result = error_set(err, ERROR_UPSTREAM,
				"the key \"%.80s\" is not percent-encoded.",
				(const char *)key.data);
		entry->has_key =
			strlen(buffer_text(&decoded) + entry->key) == decoded.len - entry->key;
		buffer_add_byte(&decoded, '\0');
		if (entry->has_id)
			entry->id = keep_text(&decoded, span_text(s3_page_text(page, entry->id)));
	}
	buffer_release(&page->texts);
	page->texts = decoded;
	return result;
}

static int decode_marker(struct s3_page *page, struct error *err)
{
	struct buffer decoded;
	buffer_init(&decoded, S3_MARKER_MAX_BYTES);
	const bool is_right = decode_percent(span_text(page->marker), true, &decoded);
	/* not longer than before */
	memcpy(page->marker, buffer_text(&decoded), strlen(buffer_text(&decoded)) + 1);
	buffer_release(&decoded);
	return is_right ? 0 : error_set(err, ERROR_UPSTREAM, "its marker is not percent-encoded.");
}
