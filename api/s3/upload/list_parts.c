/* ListParts: reads the query, takes one page of the upload's parts from the store, and writes it as
 * XML. A page is small enough to be made in one piece. */
#include "api/s3/upload/handlers.h"

#include "api/s3/request/checksum_xml.h"
#include "api/s3/request/list_request.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/upload/upload_request.h"

enum { PARTS_PAGE_MAX = 1000, PARTS_BODY_MAX_BYTES = 4 * 1024 * 1024 };

struct page {
	uint32_t after;
	uint64_t limit;
	struct upload_parts parts;
};

static bool read_marker(struct exchange *exchange, uint32_t *out_after, enum next *out_next);
static int read_page(struct exchange *exchange, const struct upload_ref *ref, struct page *page,
	struct error *err);
static void write_page(struct exchange *exchange, struct xml_writer *xml, const struct page *page);
static void write_part(struct xml_writer *xml, const struct uploaded_part *part);

enum next list_parts_begin(struct exchange *exchange)
{
	struct upload_ref ref;
	struct page page = {.after = 0};
	struct error err = {0};
	enum next next;
	struct buffer body;
	struct xml_writer xml;
	if (!s3_request_limit(
		    exchange, "max-parts", PARTS_PAGE_MAX, PARTS_PAGE_MAX, &page.limit, &next) ||
		!read_marker(exchange, &page.after, &next) ||
		!upload_request_read(exchange, &ref, &next))
		return next;
	if (read_page(exchange, &ref, &page, &err) != 0)
		return exchange_fail(exchange, &err);
	buffer_init(&body, PARTS_BODY_MAX_BYTES);
	xml_writer_begin(&xml, &body, "ListPartsResult", true);
	write_page(exchange, &xml, &page);
	xml_writer_end(&xml);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}

static bool read_marker(struct exchange *exchange, uint32_t *out_after, enum next *out_next)
{
	struct span text;
	uint64_t after = 0;
	*out_after = 0;
	if (!exchange_query(exchange, "part-number-marker", &text) || text.len == 0)
		return true;
	if (!span_parse_u64(text, &after) || after > INT32_MAX) {
		*out_next = s3_error_argument(exchange, "part-number-marker", text,
			"Argument part-number-marker must be an integer between 0 and 2147483647");
		return false;
	}
	*out_after = (uint32_t)after;
	return true;
}

static int read_page(struct exchange *exchange, const struct upload_ref *ref, struct page *page,
	struct error *err)
{
	const struct upload_parts_range range = {page->after, (size_t)page->limit};
	return upload_list_parts(
		exchange->context->store, ref, range, exchange->arena, &page->parts, err);
}

static void write_page(struct exchange *exchange, struct xml_writer *xml, const struct page *page)
{
	const struct upload *const upload = &page->parts.upload;
	const size_t count = page->parts.count;
	const bool truncated = page->parts.truncated && page->limit > 0;
	char id[UPLOAD_ID_TEXT_BYTES];
	ASSERT(count <= page->limit);
	upload_id_format(&upload->id, id);
	xml_writer_text(xml, "Bucket", exchange_bucket(exchange).name);
	xml_writer_text(xml, "Key", upload->key);
	xml_writer_text(xml, "UploadId", span_text(id));
	list_request_uploader(xml, upload->initiator);
	xml_writer_text(xml, "StorageClass", span_text(storage_class_name(upload->storage_class)));
	xml_writer_u64(xml, "PartNumberMarker", page->after);
	if (count > 0)
		xml_writer_u64(xml, "NextPartNumberMarker", page->parts.parts[count - 1].number);
	xml_writer_u64(xml, "MaxParts", page->limit);
	xml_writer_bool(xml, "IsTruncated", truncated);
	checksum_xml_upload(xml, &upload->checksum);
	for (size_t i = 0; i < count; i++)
		write_part(xml, &page->parts.parts[i]);
}

static void write_part(struct xml_writer *xml, const struct uploaded_part *part)
{
	xml_writer_open(xml, "Part");
	xml_writer_u64(xml, "PartNumber", part->number);
	xml_writer_time(xml, "LastModified", part->modified_ms);
	xml_writer_etag(xml, "ETag", part->etag);
	xml_writer_u64(xml, "Size", part->size);
	checksum_xml_value(xml, &part->checksum, 0);
	xml_writer_close(xml);
}
