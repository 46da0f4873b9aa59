#include "api/s3/bucket/bucket_versioning.h"

#include "api/s3/bucket/bucket_setting.h"
#include "api/s3/bucket/handlers.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/request/xml_body.h"
#include "api/s3/xml/xml_tree.h"
#include "api/s3/xml/xml_writer.h"

enum { BODY_MAX_BYTES = 4096 };

const char *bucket_versioning_name(enum bucket_versioning versioning)
{
	static const char *const names[] = {[BUCKET_UNVERSIONED] = NULL,
		[BUCKET_VERSIONED] = "Enabled",
		[BUCKET_SUSPENDED] = "Suspended"};
	return (size_t)versioning < sizeof(names) / sizeof(names[0]) ? names[versioning] : NULL;
}

enum next get_bucket_versioning_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct bucket bucket;
	if (s3_request_check_owner(exchange, &err) != 0 ||
		bucket_find(exchange->context->store, exchange_bucket(exchange), exchange->arena,
			&bucket, &err) != 0)
		return exchange_fail(exchange, &err);
	const char *const name = bucket_versioning_name(bucket.versioning);
	struct buffer body;
	struct xml_writer xml;
	buffer_init(&body, BODY_MAX_BYTES);
	xml_writer_begin(&xml, &body, "VersioningConfiguration", true);
	if (name != NULL)
		xml_writer_text(&xml, "Status", span_text(name));
	xml_writer_end(&xml);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}

int bucket_versioning_parse(
	struct span xml, struct arena *arena, enum bucket_versioning *out, struct error *err)
{
	struct xml_node *root;
	if (xml_tree_parse(xml, "VersioningConfiguration", arena, &root, err) != 0 ||
		xml_tree_check(root, "Status|MfaDelete", "Status|MfaDelete", err) != 0)
		return -1;
	const struct span status = xml_tree_text(root, "Status");
	const struct span mfa = xml_tree_text(root, "MfaDelete");
	if (mfa.len > 0 && !span_equal_text(mfa, "Disabled"))
		return error_set(err, ERROR_UNSUPPORTED, "MFA delete is not implemented.");
	if (xml_tree_child(root, "Status") == NULL)
		return error_set(err, ERROR_INVALID, "The Versioning element must be specified");
	*out = span_equal_text(status, "Enabled") ? BUCKET_VERSIONED : BUCKET_SUSPENDED;
	if (*out == BUCKET_SUSPENDED && !span_equal_text(status, "Suspended"))
		return error_set(err, ERROR_MALFORMED_XML,
			"The Status of a VersioningConfiguration must be Enabled or Suspended.");
	return 0;
}

enum next put_bucket_versioning_finish(struct exchange *exchange)
{
	struct bucket_edit edit = {.sets_versioning = true};
	struct error err = {0};
	enum next next;
	struct span xml;
	if (!xml_body_check(exchange, &xml, &next))
		return next;
	if (bucket_versioning_parse(xml, exchange->arena, &edit.versioning, &err) == 0)
		return bucket_setting_start(exchange, &edit, 200);
	if (err.kind != ERROR_INVALID)
		return exchange_fail(exchange, &err);
	return s3_error_reply(exchange,
		&(struct s3_error){.kind = ERROR_INVALID,
			.code = "IllegalVersioningConfigurationException",
			.message = err.text});
}
