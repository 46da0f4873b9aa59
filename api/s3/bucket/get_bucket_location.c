#include "api/s3/bucket/handlers.h"

#include "api/s3/bucket/bucket_setting.h"
#include "api/s3/xml/xml_writer.h"

enum { BODY_MAX_BYTES = 4096 };

enum next get_bucket_location_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct span location;
	if (bucket_setting_find(exchange, BUCKET_LOCATION, &location, &err) != 0)
		return exchange_fail(exchange, &err);
	if (location.len == 0)
		location = span_text(exchange->context->region);

	struct buffer body;
	buffer_init(&body, BODY_MAX_BYTES);
	/* The region is the text of the root, which is empty for us-east-1. */
	struct xml_writer xml;
	xml_writer_begin(&xml, &body, "LocationConstraint", true);
	if (!span_equal_text(location, "us-east-1"))
		xml_writer_content(&xml, location);
	xml_writer_end(&xml);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}
