#include "api/s3/upload/handlers.h"

#include "api/s3/request/checksum_xml.h"
#include "api/s3/request/list_request.h"
#include "api/s3/request/s3_error.h"
#include "storage/uploads/upload.h"

struct markers { /* as sent */
	struct span key;
	struct span id; /* ignored without a key */
};

static bool read_markers(struct exchange *exchange, struct markers *out,
	struct upload_list_params *params, enum next *out_next);
static void write_page(const struct list_request *request, struct xml_writer *xml,
	const struct markers *markers, const struct upload_list *list);
static void write_upload(
	const struct list_request *request, struct xml_writer *xml, const struct upload *upload);

enum next list_uploads_begin(struct exchange *exchange)
{
	struct list_request request;
	struct markers markers;
	struct upload_list_params params = {.limit = 0};
	struct upload_list list;
	struct error err = {0};
	enum next next;
	struct buffer body;
	struct xml_writer xml;
	if (!list_request_read(exchange, "max-uploads", &request, &next) ||
		!read_markers(exchange, &markers, &params, &next))
		return next;
	params.bucket = exchange_bucket(exchange);
	params.prefix = request.prefix;
	params.delimiter = request.delimiter;
	params.limit = (size_t)request.limit;
	if (upload_list(exchange->context->store, &params, exchange->arena, &list, &err) != 0)
		return exchange_fail(exchange, &err);
	buffer_init(&body, LIST_BODY_MAX_BYTES);
	xml_writer_begin(&xml, &body, "ListMultipartUploadsResult", true);
	write_page(&request, &xml, &markers, &list);
	xml_writer_end(&xml);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}

static bool read_markers(struct exchange *exchange, struct markers *out,
	struct upload_list_params *params, enum next *out_next)
{
	*out = (struct markers){0};
	exchange_query(exchange, "key-marker", &out->key);
	exchange_query(exchange, "upload-id-marker", &out->id);
	params->after_key = out->key;
	if (out->key.len == 0 || out->id.len == 0)
		return true;
	params->has_after_id = upload_id_parse(out->id, &params->after_id);
	if (!params->has_after_id)
		*out_next = s3_error_argument(
			exchange, "upload-id-marker", out->id, "Invalid uploadId marker");
	return params->has_after_id;
}

static void write_page(const struct list_request *request, struct xml_writer *xml,
	const struct markers *markers, const struct upload_list *list)
{
	char id[UPLOAD_ID_TEXT_BYTES];
	ASSERT(list->upload_count + list->prefix_count <= request->limit);
	xml_writer_text(xml, "Bucket", request->bucket.name);
	list_request_name(request, xml, "KeyMarker", markers->key);
	xml_writer_text(
		xml, "UploadIdMarker", markers->key.len > 0 ? markers->id : (struct span){NULL, 0});
	if (list->truncated) {
		upload_id_format(&list->last_id, id);
		list_request_name(request, xml, "NextKeyMarker", list->last_key);
		xml_writer_text(xml, "NextUploadIdMarker", span_text(id));
	}
	list_request_name(request, xml, "Prefix", request->prefix);
	list_request_echo(request, xml);
	xml_writer_u64(xml, "MaxUploads", request->limit);
	xml_writer_bool(xml, "IsTruncated", list->truncated);
	for (size_t i = 0; i < list->upload_count; i++)
		write_upload(request, xml, &list->uploads[i]);
	list_request_prefixes(request, xml, list->prefixes, list->prefix_count);
}

static void write_upload(
	const struct list_request *request, struct xml_writer *xml, const struct upload *upload)
{
	char id[UPLOAD_ID_TEXT_BYTES];
	upload_id_format(&upload->id, id);
	xml_writer_open(xml, "Upload");
	list_request_name(request, xml, "Key", upload->key);
	xml_writer_text(xml, "UploadId", span_text(id));
	list_request_uploader(xml, upload->initiator);
	xml_writer_text(xml, "StorageClass", span_text(storage_class_name(upload->storage_class)));
	xml_writer_time(xml, "Initiated", upload->created_ms);
	checksum_xml_upload(xml, &upload->checksum);
	xml_writer_close(xml);
}
