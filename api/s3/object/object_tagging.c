/* GET reads the tags of a version; PUT and DELETE change them in one change, with the same last
 * step. PUT looks for the version before it accepts the body. */
#include "api/s3/object/handlers.h"

#include "api/s3/object/object_request.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/request/tagging.h"
#include "api/s3/request/xml_body.h"
#include "storage/objects/object_change.h"

static bool check_request(struct exchange *exchange, struct object_ref *out, enum next *out_next);
static enum next start(struct exchange *exchange, const struct object_ref *ref, struct span tags);
static enum next resume(struct exchange *exchange, int status);

enum next get_object_tagging_begin(struct exchange *exchange)
{
	struct object_ref ref;
	struct object object;
	struct buffer body;
	struct error err = {0};
	enum next next;
	if (!check_request(exchange, &ref, &next))
		return next;
	if (object_request_find(exchange, &ref, &object, &err) != 0)
		return exchange_fail(exchange, &err);
	buffer_init(&body, TAGGING_BODY_MAX_BYTES);
	if (tagging_write_xml(object.tags, exchange->arena, &body, &err) != 0) {
		buffer_release(&body);
		return exchange_fail(exchange, &err);
	}
	object_request_add_version(exchange, &object);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}

enum next put_object_tagging_begin(struct exchange *exchange)
{
	struct object_ref ref;
	struct object object;
	struct error err = {0};
	enum next next;
	if (!check_request(exchange, &ref, &next))
		return next;
	if (object_request_find(exchange, &ref, &object, &err) != 0)
		return exchange_fail(exchange, &err);
	return xml_body_accept(exchange, TAGGING_BODY_MAX_BYTES);
}

enum next put_object_tagging_finish(struct exchange *exchange)
{
	struct object_ref ref;
	struct span xml;
	struct span tags;
	struct error err = {0};
	enum next next;
	if (!object_request_ref(exchange, &ref, &next) || !xml_body_check(exchange, &xml, &next))
		return next;
	if (tagging_read_xml(xml, TAG_SET_OBJECT_MAX, exchange->arena, &tags, &err) != 0)
		return exchange_fail(exchange, &err);
	return start(exchange, &ref, tags);
}

enum next put_object_tagging_resume(struct exchange *exchange)
{
	return resume(exchange, 200);
}

enum next delete_object_tagging_begin(struct exchange *exchange)
{
	struct object_ref ref;
	enum next next;
	return check_request(exchange, &ref, &next) ? start(exchange, &ref, (struct span){NULL, 0})
						    : next;
}

enum next delete_object_tagging_resume(struct exchange *exchange)
{
	return resume(exchange, 204);
}

static bool check_request(struct exchange *exchange, struct object_ref *out, enum next *out_next)
{
	struct error err = {0};
	if (!object_request_ref(exchange, out, out_next))
		return false;
	if (s3_request_check_owner(exchange, &err) == 0)
		return true;
	*out_next = exchange_fail(exchange, &err);
	return false;
}

static enum next start(struct exchange *exchange, const struct object_ref *ref, struct span tags)
{
	const struct object_change_params params = {
		.object = *ref, .sets_tags = true, .tags = tags};
	return exchange_await(exchange, object_change_call(exchange->context->store, &params));
}

static enum next resume(struct exchange *exchange, int status)
{
	struct object object;
	struct error err = {0};
	ASSERT(exchange->call != NULL);
	if (object_change_result(exchange->call, &object, &err) != 0)
		return exchange_fail(exchange, &err);
	object_request_add_version(exchange, &object);
	return exchange_reply_empty(exchange, status);
}
