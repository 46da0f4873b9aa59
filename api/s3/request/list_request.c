/* The rows of a page are most of what a listing costs, and only names in them need escaping. So
 * list_request_object reserves room for a whole row once and stores its fixed texts and numbers
 * directly, without the writer's element by element escaping. */
#include "api/s3/request/list_request.h"

#include <string.h>

#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"

static bool read_encoding(struct exchange *exchange, struct list_request *out, enum next *out_next)
{
	struct span value;
	if (!exchange_query(exchange, "encoding-type", &value) || value.len == 0)
		return true;
	out->encode_url = span_equal_nocase(value, "url");
	if (!out->encode_url)
		*out_next = s3_error_argument(exchange, "encoding-type", value,
			"Invalid Encoding Method specified in Request");
	return out->encode_url;
}

static bool find_bucket(struct exchange *exchange, struct list_request *out, enum next *out_next)
{
	struct error err = {0};
	if (s3_request_check_owner(exchange, &err) == 0 &&
		bucket_find(exchange->context->store, exchange_bucket(exchange), exchange->arena,
			&out->bucket, &err) == 0)
		return true;
	*out_next = exchange_fail(exchange, &err);
	return false;
}

bool list_request_read(struct exchange *exchange, const char *limit_name, struct list_request *out,
	enum next *out_next)
{
	ASSERT(limit_name != NULL);
	*out = (struct list_request){0};
	exchange_query(exchange, "prefix", &out->prefix);
	exchange_query(exchange, "delimiter", &out->delimiter);
	return read_encoding(exchange, out, out_next) &&
		s3_request_limit(exchange, limit_name, LIST_PAGE_MAX, LIST_PAGE_MAX, &out->limit,
			out_next) &&
		find_bucket(exchange, out, out_next);
}

void list_request_name(const struct list_request *request, struct xml_writer *xml,
	const char *element, struct span name)
{
	if (request->encode_url)
		xml_writer_percent(xml, element, name);
	else
		xml_writer_text(xml, element, name);
}

void list_request_echo(const struct list_request *request, struct xml_writer *xml)
{
	if (request->delimiter.len > 0)
		list_request_name(request, xml, "Delimiter", request->delimiter);
	if (request->encode_url)
		xml_writer_text(xml, "EncodingType", span_text("url"));
}

void list_request_owner(struct xml_writer *xml, const char *element, struct span account)
{
	xml_writer_open(xml, element);
	xml_writer_text(xml, "ID", account);
	xml_writer_text(xml, "DisplayName", account);
	xml_writer_close(xml);
}

void list_request_uploader(struct xml_writer *xml, struct span initiator)
{
	const struct span account = initiator.len > 0 ? initiator : span_text("anonymous");
	list_request_owner(xml, "Initiator", account);
	list_request_owner(xml, "Owner", account);
}

#define LITERAL(text) (text), sizeof(text) - 1
enum { ROW_MAX_BYTES = 512 };

static inline uint8_t *put(uint8_t *at, const char *text, size_t len)
{
	memcpy(at, text, len);
	return at + len;
}

static uint8_t *put_name(uint8_t *at, const char *text)
{
	return put(at, text, strlen(text));
}

static uint8_t *put_time(uint8_t *at, int64_t modified_ms)
{
	char text[CLOCK_TEXT_BYTES];
	clock_format_iso(modified_ms, text);
	at = put(at, LITERAL("<LastModified>"));
	at = put(at, text, sizeof("1994-11-06T08:49:37.000Z") - 1);
	return put(at, LITERAL("</LastModified>"));
}

static uint8_t *put_etag(uint8_t *at, const char *etag)
{
	at = put(at, LITERAL("<ETag>&quot;"));
	at = put_name(at, etag);
	return put(at, LITERAL("&quot;</ETag>"));
}

static uint8_t *put_checksum(uint8_t *at, const struct object_entry *entry)
{
	if (entry->checksum_algorithm == CHECKSUM_NONE)
		return at;
	at = put(at, LITERAL("<ChecksumAlgorithm>"));
	at = put_name(at, checksum_name(entry->checksum_algorithm));
	at = put(at, LITERAL("</ChecksumAlgorithm><ChecksumType>"));
	at = entry->checksum_type == CHECKSUM_COMPOSITE ? put(at, LITERAL("COMPOSITE"))
							: put(at, LITERAL("FULL_OBJECT"));
	return put(at, LITERAL("</ChecksumType>"));
}

void list_request_object(const struct list_request *request, struct xml_writer *xml,
	const struct object_entry *entry, bool with_owner)
{
	if (with_owner)
		list_request_owner(xml, "Owner", request->bucket.owner);
	uint8_t *const row = xml_writer_room(xml, ROW_MAX_BYTES);
	if (row == NULL)
		return;
	uint8_t *at = put_time(row, entry->modified_ms);
	at = put_etag(at, entry->etag);
	at = put_checksum(at, entry);
	at = put(at, LITERAL("<Size>"));
	at = xml_writer_put_u64(at, entry->size);
	at = put(at, LITERAL("</Size><StorageClass>"));
	at = put_name(at, storage_class_name(entry->storage_class));
	at = put(at, LITERAL("</StorageClass>"));
	ASSERT(at - row <= ROW_MAX_BYTES);
	xml_writer_advance(xml, at);
}

void list_request_prefixes(const struct list_request *request, struct xml_writer *xml,
	const struct span *prefixes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		xml_writer_open(xml, "CommonPrefixes");
		list_request_name(request, xml, "Prefix", prefixes[i]);
		xml_writer_close(xml);
	}
}
