#include "api/s3/list_request.h"

#include "api/s3/s3_error.h"
#include "api/s3/s3_request.h"

static bool read_encoding(struct exchange *const exchange, struct list_request *const out, enum next *const out_next)
{
	struct span value;
	if (!exchange_query(exchange, "encoding-type", &value) || value.len == 0)
		return true;
	out->encode_url = span_equal_nocase(value, "url");
	if (!out->encode_url)
		*out_next = s3_error_argument(exchange, "encoding-type", value, "Invalid Encoding Method specified in Request");
	return out->encode_url;
}

static bool find_bucket(struct exchange *const exchange, struct list_request *const out, enum next *const out_next)
{
	struct error err = {0};
	if (s3_request_check_owner(exchange, &err) == 0
		&& bucket_find(exchange->context->store, s3_request_bucket(exchange), exchange->arena, &out->bucket, &err) == 0)
		return true;
	*out_next = exchange_fail(exchange, &err);
	return false;
}

bool list_request_read(struct exchange *const exchange, const char *const limit_name, struct list_request *const out,
	enum next *const out_next)
{
	*out = (struct list_request){0};
	exchange_query(exchange, "prefix", &out->prefix);
	exchange_query(exchange, "delimiter", &out->delimiter);
	return read_encoding(exchange, out, out_next)
		&& s3_request_limit(exchange, limit_name, LIST_PAGE_MAX, LIST_PAGE_MAX, &out->limit, out_next)
		&& find_bucket(exchange, out, out_next);
}

void list_request_name(const struct list_request *const request, struct xml_writer *const xml, const char *const element,
	const struct span name)
{
	if (request->encode_url)
		xml_writer_percent(xml, element, name);
	else
		xml_writer_text(xml, element, name);
}

void list_request_echo(const struct list_request *const request, struct xml_writer *const xml)
{
	if (request->delimiter.len > 0)
		list_request_name(request, xml, "Delimiter", request->delimiter);
	if (request->encode_url)
		xml_writer_text(xml, "EncodingType", span_text("url"));
}

void list_request_owner(struct xml_writer *const xml, const char *const element, const struct span account)
{
	xml_writer_open(xml, element);
	xml_writer_text(xml, "ID", account);
	xml_writer_text(xml, "DisplayName", account);
	xml_writer_close(xml);
}

static void write_checksum(struct xml_writer *const xml, const struct object_entry *const entry)
{
	if (entry->checksum_algorithm == CHECKSUM_NONE)
		return;
	xml_writer_text(xml, "ChecksumAlgorithm", span_text(checksum_name(entry->checksum_algorithm)));
	xml_writer_text(xml, "ChecksumType", span_text(entry->checksum_type == CHECKSUM_COMPOSITE ? "COMPOSITE" : "FULL_OBJECT"));
}

void list_request_object(const struct list_request *const request, struct xml_writer *const xml, const struct object_entry *const entry,
	const bool with_owner)
{
	xml_writer_time(xml, "LastModified", entry->modified_ms);
	xml_writer_etag(xml, "ETag", entry->etag);
	write_checksum(xml, entry);
	xml_writer_u64(xml, "Size", entry->size);
	if (with_owner)
		list_request_owner(xml, "Owner", request->bucket.owner);
	xml_writer_text(xml, "StorageClass", span_text(storage_class_name(entry->storage_class)));
}

void list_request_prefixes(const struct list_request *const request, struct xml_writer *const xml, const struct span *const prefixes,
	const size_t count)
{
	for (size_t i = 0; i < count; i++) {
		xml_writer_open(xml, "CommonPrefixes");
		list_request_name(request, xml, "Prefix", prefixes[i]);
		xml_writer_close(xml);
	}
}
