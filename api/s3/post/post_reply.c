/* A redirect goes before a status. It gets the bucket, key and ETag as query parameters. A target
 * that is not an absolute URL of visible ASCII is ignored. */
#include "api/s3/post/post_reply.h"

#include "api/objects/object_reply.h"
#include "api/s3/object/object_request.h"
#include "api/s3/request/checksum_headers.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/xml/xml_writer.h"
#include "base/encode.h"

enum { REPLY_MAX_BYTES = 64 * 1024, URL_MAX_BYTES = 8192 };

static const char *redirect_of(
	struct exchange *exchange, const struct post_form *form, const struct object *object);
static bool is_url(struct span url);
static const char *location_of(struct exchange *exchange);
static int status_of(const struct post_form *form);
static enum next reply_document(
	struct exchange *exchange, const char *location, const struct object *object);

enum next post_reply(
	struct exchange *exchange, const struct post_form *form, const struct object *object)
{
	const char *const redirect = redirect_of(exchange, form, object);
	const char *const location = location_of(exchange);
	const int status = status_of(form);
	object_reply_add_identity(exchange, object);
	object_request_add_written(exchange, object);
	checksum_headers_add(exchange, &object->checksum, 0);
	exchange_add_header(exchange, "Location", redirect != NULL ? redirect : location);
	if (redirect != NULL)
		return exchange_reply_empty(exchange, 303);
	return status == 201 ? reply_document(exchange, location, object)
			     : exchange_reply_empty(exchange, status);
}

/* NULL when the form asks for no redirect, or its target is not a URL. */
static const char *redirect_of(
	struct exchange *exchange, const struct post_form *form, const struct object *object)
{
	struct span target;
	struct buffer url;
	if (!post_form_find(form, "success_action_redirect", &target) &&
		!post_form_find(form, "redirect", &target))
		return NULL;
	if (!is_url(target))
		return NULL;
	buffer_init(&url, URL_MAX_BYTES);
	buffer_add_span(&url, target);
	buffer_add_text(&url, span_find(target, '?') < 0 ? "?bucket=" : "&bucket=");
	encode_percent(exchange_bucket(exchange).name, false, &url);
	buffer_add_text(&url, "&key=");
	encode_percent(s3_request_key(exchange), false, &url);
	buffer_format(&url, "&etag=%%22%s%%22", object->etag);
	const char *const text =
		buffer_failed(&url) ? NULL : arena_text(exchange->arena, buffer_span(&url));
	buffer_release(&url);
	return text;
}

/* Whether the text is an absolute URL of visible ASCII. */
static bool is_url(struct span url)
{
	if (!span_equal_nocase(span_slice(url, 0, 7), "http://") &&
		!span_equal_nocase(span_slice(url, 0, 8), "https://"))
		return false;
	for (size_t i = 0; i < url.len; i++)
		if (url.data[i] <= ' ' || url.data[i] >= 0x7f)
			return false;
	return true;
}

/* The object's URL with the host by which the client called this server. */
static const char *location_of(struct exchange *exchange)
{
	const struct span host = exchange_header(exchange, "host");
	const bool is_virtual = exchange->path.len <= 1;
	struct buffer url;
	buffer_init(&url, URL_MAX_BYTES);
	buffer_format(&url, "%s://%.*s/", exchange->secure ? "https" : "http", (int)host.len,
		(const char *)host.data);
	if (!is_virtual) {
		buffer_add_span(&url, exchange_bucket(exchange).name);
		buffer_add_byte(&url, '/');
	}
	encode_percent(s3_request_key(exchange), true, &url);
	const char *const text =
		buffer_failed(&url) ? NULL : arena_text(exchange->arena, buffer_span(&url));
	buffer_release(&url);
	return text;
}

static int status_of(const struct post_form *form)
{
	static const struct {
		const char *text;
		int status;
	} rows[] = {{"200", 200}, {"201", 201}};
	struct span wanted;
	if (post_form_find(form, "success_action_status", &wanted))
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			if (span_equal_text(span_trim(wanted), rows[i].text))
				return rows[i].status;
	return 204;
}

static enum next reply_document(
	struct exchange *exchange, const char *location, const struct object *object)
{
	struct buffer body;
	struct xml_writer xml;
	buffer_init(&body, REPLY_MAX_BYTES);
	xml_writer_begin(&xml, &body, "PostResponse", false);
	xml_writer_text(&xml, "Location", span_text(location));
	xml_writer_text(&xml, "Bucket", exchange_bucket(exchange).name);
	xml_writer_text(&xml, "Key", s3_request_key(exchange));
	xml_writer_etag(&xml, "ETag", object->etag);
	xml_writer_end(&xml);
	return exchange_reply_buffer(exchange, 201, "application/xml", &body);
}
