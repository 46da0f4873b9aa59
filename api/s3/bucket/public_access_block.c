#include "api/s3/bucket/public_access_block.h"

#include "api/s3/bucket/bucket_setting.h"
#include "api/s3/bucket/handlers.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/xml_body.h"
#include "api/s3/xml/xml_tree.h"
#include "api/s3/xml/xml_writer.h"

enum { BODY_MAX_BYTES = 4096 };

static const struct {
	const char *name;
	enum public_access_block bit;
} bits[] = {
	{"BlockPublicAcls", BLOCK_PUBLIC_ACLS},
	{"IgnorePublicAcls", IGNORE_PUBLIC_ACLS},
	{"BlockPublicPolicy", BLOCK_PUBLIC_POLICY},
	{"RestrictPublicBuckets", RESTRICT_PUBLIC_BUCKETS},
};
static const char names[] =
	"BlockPublicAcls|IgnorePublicAcls|BlockPublicPolicy|RestrictPublicBuckets";

static int parse(struct span xml, struct arena *arena, uint8_t *out, struct error *err);

enum next get_public_access_block_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct span document;
	if (bucket_setting_find(exchange, BUCKET_PUBLIC_ACCESS, &document, &err) != 0)
		return exchange_fail(exchange, &err);
	if (document.len == 0)
		return s3_error_reply(exchange,
			&(struct s3_error){.kind = ERROR_NOT_FOUND,
				.code = "NoSuchPublicAccessBlockConfiguration",
				.message = "The public access block configuration was not found"});
	struct buffer body;
	struct xml_writer xml;
	buffer_init(&body, BODY_MAX_BYTES);
	xml_writer_begin(&xml, &body, "PublicAccessBlockConfiguration", true);
	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		xml_writer_bool(&xml, bits[i].name, (document.data[0] & bits[i].bit) != 0);
	xml_writer_end(&xml);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}

enum next put_public_access_block_finish(struct exchange *exchange)
{
	struct error err = {0};
	enum next next;
	struct span xml;
	uint8_t document;
	if (!xml_body_check(exchange, &xml, &next))
		return next;
	if (parse(xml, exchange->arena, &document, &err) != 0)
		return exchange_fail(exchange, &err);
	return bucket_setting_store(exchange, BUCKET_PUBLIC_ACCESS, span_of(&document, 1), 200);
}

enum next delete_public_access_block_begin(struct exchange *exchange)
{
	return bucket_setting_drop(exchange, BUCKET_PUBLIC_ACCESS);
}

int public_access_block_check(
	struct exchange *exchange, enum public_access_block bit, struct error *err)
{
	struct span document;
	ASSERT(bit == BLOCK_PUBLIC_ACLS || bit == BLOCK_PUBLIC_POLICY);
	if (bucket_document_find(exchange->context->store, exchange_bucket(exchange),
		    BUCKET_PUBLIC_ACCESS, exchange->arena, &document, err) != 0)
		return -1;
	return document.len == 0 || (document.data[0] & bit) == 0
		? 0
		: error_set(err, ERROR_DENIED,
			  "Public access is blocked by the PublicAccessBlock setting of the bucket.");
}

static int parse(struct span xml, struct arena *arena, uint8_t *out, struct error *err)
{
	struct xml_node *root;
	*out = 0;
	if (xml_tree_parse(xml, "PublicAccessBlockConfiguration", arena, &root, err) != 0 ||
		xml_tree_check(root, names, names, err) != 0)
		return -1;
	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
		const struct span value = xml_tree_text(root, bits[i].name);
		const bool on = span_equal_nocase(value, "true");
		if (xml_tree_child(root, bits[i].name) != NULL && !on &&
			!span_equal_nocase(value, "false"))
			return error_set(err, ERROR_MALFORMED_XML, "%s must be true or false.",
				bits[i].name);
		*out |= on ? (uint8_t)bits[i].bit : 0;
	}
	return 0;
}
