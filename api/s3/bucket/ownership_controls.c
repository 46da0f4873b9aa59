#include "api/s3/bucket/ownership_controls.h"

#include "api/s3/bucket/bucket_setting.h"
#include "api/s3/bucket/handlers.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/xml_body.h"
#include "api/s3/xml/xml_tree.h"
#include "api/s3/xml/xml_writer.h"

enum { BODY_MAX_BYTES = 4096 };

static int parse(struct span xml, struct arena *arena, struct span *out, struct error *err);

bool ownership_controls_is_value(struct span value)
{
	static const char *const values[] = {
		"BucketOwnerEnforced", "BucketOwnerPreferred", "ObjectWriter"};
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (span_equal_text(value, values[i]))
			return true;
	return false;
}

enum next get_ownership_controls_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct span document;
	if (bucket_setting_find(exchange, BUCKET_OWNERSHIP, &document, &err) != 0)
		return exchange_fail(exchange, &err);
	if (document.len == 0)
		return s3_error_reply(exchange,
			&(struct s3_error){.kind = ERROR_NOT_FOUND,
				.code = "OwnershipControlsNotFoundError",
				.message = "The bucket ownership controls were not found"});
	struct buffer body;
	struct xml_writer xml;
	buffer_init(&body, BODY_MAX_BYTES);
	xml_writer_begin(&xml, &body, "OwnershipControls", true);
	xml_writer_open(&xml, "Rule");
	xml_writer_text(&xml, "ObjectOwnership", document);
	xml_writer_end(&xml);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}

enum next put_ownership_controls_finish(struct exchange *exchange)
{
	struct error err = {0};
	enum next next;
	struct span xml;
	struct span value;
	if (!xml_body_check(exchange, &xml, &next))
		return next;
	if (parse(xml, exchange->arena, &value, &err) != 0)
		return exchange_fail(exchange, &err);
	return bucket_setting_store(exchange, BUCKET_OWNERSHIP, value, 200);
}

enum next delete_ownership_controls_begin(struct exchange *exchange)
{
	return bucket_setting_drop(exchange, BUCKET_OWNERSHIP);
}

int ownership_controls_enforced(struct exchange *exchange, bool *out, struct error *err)
{
	struct span document = {NULL, 0};
	if (bucket_document_find(exchange->context->store, exchange_bucket(exchange),
		    BUCKET_OWNERSHIP, exchange->arena, &document, err) != 0)
		return -1;
	*out = span_equal_text(document, "BucketOwnerEnforced");
	return 0;
}

static int parse(struct span xml, struct arena *arena, struct span *out, struct error *err)
{
	struct xml_node *root;
	if (xml_tree_parse(xml, "OwnershipControls", arena, &root, err) != 0 ||
		xml_tree_check(root, "Rule", "Rule", err) != 0)
		return -1;
	*out = xml_tree_text(xml_tree_child(root, "Rule"), "ObjectOwnership");
	return ownership_controls_is_value(*out)
		? 0
		: error_set(err, ERROR_MALFORMED_XML,
			  "ObjectOwnership must be BucketOwnerEnforced, BucketOwnerPreferred or ObjectWriter.");
}
