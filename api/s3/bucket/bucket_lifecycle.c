#include "api/s3/bucket/bucket_lifecycle.h"

#include "api/s3/bucket/bucket_setting.h"
#include "api/s3/bucket/handlers.h"
#include "api/s3/bucket/lifecycle_xml.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/request/xml_body.h"
#include "base/encode.h"
#include "storage/buckets/lifecycle_cache.h"
#include "storage/buckets/lifecycle_document.h"

enum { XML_MAX_BYTES = 8 * BUCKET_DOCUMENT_MAX_BYTES, HEADER_MAX_BYTES = 2048 };

static enum next reply_failed(struct exchange *exchange, const struct error *err);

enum next get_bucket_lifecycle_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct span document;
	struct lifecycle lifecycle;
	struct buffer body;
	if (bucket_setting_find(exchange, BUCKET_LIFECYCLE, &document, &err) != 0 ||
		lifecycle_document_parse(document, exchange->arena, &lifecycle, &err) != 0)
		return exchange_fail(exchange, &err);
	if (lifecycle.count == 0)
		return s3_error_reply(exchange,
			&(struct s3_error){.kind = ERROR_NOT_FOUND,
				.code = "NoSuchLifecycleConfiguration",
				.message = "The lifecycle configuration does not exist"});
	buffer_init(&body, XML_MAX_BYTES);
	lifecycle_xml_print(&lifecycle, &body);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}

enum next put_bucket_lifecycle_finish(struct exchange *exchange)
{
	struct error err = {0};
	struct lifecycle lifecycle;
	struct buffer document;
	struct span xml;
	enum next next;
	if (!xml_body_check(exchange, &xml, &next))
		return next;
	if (lifecycle_xml_parse(xml, exchange->arena, &lifecycle, &err) != 0)
		return reply_failed(exchange, &err);
	buffer_init(&document, BUCKET_DOCUMENT_MAX_BYTES);
	lifecycle_document_print(&lifecycle, &document);
	const int printed = buffer_check(&document, "the lifecycle configuration", &err);
	next = printed == 0
		? bucket_setting_store(exchange, BUCKET_LIFECYCLE, buffer_span(&document), 200)
		: exchange_fail(exchange, &err);
	buffer_release(&document);
	return next;
}

enum next delete_bucket_lifecycle_begin(struct exchange *exchange)
{
	return bucket_setting_drop(exchange, BUCKET_LIFECYCLE);
}

void bucket_lifecycle_add_expiration(struct exchange *exchange, const struct object *object)
{
	const struct lifecycle_subject subject = {.key = s3_request_key(exchange),
		.size = object->size,
		.since_ms = object->modified_ms};
	char date[CLOCK_TEXT_BYTES];
	struct lifecycle_expiry expiry = {0};
	if (!object->is_current || object->is_marker ||
		!lifecycle_cache_expires(store_parts(exchange->context->store)->lifecycle_cache,
			exchange_bucket(exchange).name, &subject, object->tags, exchange->arena,
			&expiry))
		return;
	struct buffer header;
	clock_format_http(expiry.due_ms, date);
	buffer_init(&header, HEADER_MAX_BYTES);
	buffer_format(&header, "expiry-date=\"%s\", rule-id=\"", date);
	encode_percent(expiry.rule_id, false, &header);
	buffer_add_text(&header, "\"");
	if (!buffer_failed(&header))
		exchange_add_header(exchange, "x-amz-expiration",
			arena_text(exchange->arena, buffer_span(&header)));
	buffer_release(&header);
}

static enum next reply_failed(struct exchange *exchange, const struct error *err)
{
	if (err->kind == ERROR_UNSUPPORTED)
		return s3_error_not_implemented(
			exchange, "Transition", arena_format(exchange->arena, "%s", err->text));
	return exchange_fail(exchange, err);
}
