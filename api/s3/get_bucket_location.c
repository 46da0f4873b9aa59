#include "api/s3/get_bucket_location.h"

#include <string.h>

#include "api/s3/s3_request.h"
#include "api/s3/xml_writer.h"

enum { BODY_MAX_BYTES = 4096 };

enum next get_bucket_location_begin(struct exchange *const exchange)
{
	struct error err = {0};
	struct bucket bucket;
	if (s3_request_check_owner(exchange, &err) != 0
		|| bucket_find(exchange->context->store, s3_request_bucket(exchange), exchange->arena, &bucket, &err) != 0)
		return exchange_fail(exchange, &err);

	struct buffer body;
	buffer_init(&body, BODY_MAX_BYTES);
	/* The element is the root itself, and stands empty for the oldest region. */
	struct xml_writer xml;
	xml_writer_begin(&xml, &body, "LocationConstraint", true);
	if (strcmp(exchange->context->region, "us-east-1") != 0)
		xml_writer_content(&xml, span_text(exchange->context->region));
	xml_writer_end(&xml);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}
