/* The three operations on the tags of a bucket, which are one of its settings, and the reading of
 * <Tag> elements, which CreateBucket has too. Tags go from XML to a list, are checked, and are
 * stored as a tag_set. */
#include "api/s3/bucket/bucket_tagging.h"

#include "api/s3/bucket/bucket_setting.h"
#include "api/s3/bucket/handlers.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/tagging.h"
#include "api/s3/request/xml_body.h"
#include "storage/buckets/tag_set.h"

enum { TAG_BYTES = 4 + TAG_KEY_MAX_BYTES + TAG_VALUE_MAX_BYTES, REPLY_MAX_BYTES = 1024 * 1024 };

static int write_set(const struct tag *tags, size_t count, struct arena *arena,
	struct span *out_set, struct error *err);
static int parse_body(
	struct span xml, struct arena *arena, struct span *out_set, struct error *err);

int bucket_tagging_read(const struct xml_node *node, size_t most, struct arena *arena,
	struct span *out_set, struct error *err)
{
	ASSERT(node != NULL && most > 0);
	struct tag *const tags = arena_take_array(arena, most + 1, sizeof(*tags));
	size_t count = 0;
	if (tags == NULL)
		return error_set(
			err, ERROR_NO_MEMORY, "The tags do not fit the memory of a request.");
	if (xml_tree_check(node, "Tag", NULL, err) != 0)
		return -1;
	for (const struct xml_node *tag = xml_tree_child(node, "Tag"); tag != NULL && count <= most;
		tag = xml_tree_again(tag)) {
		if (xml_tree_check(tag, "Key|Value", "Key|Value", err) != 0)
			return -1;
		if (xml_tree_child(tag, "Key") == NULL || xml_tree_child(tag, "Value") == NULL)
			return error_set(
				err, ERROR_MALFORMED_XML, "A Tag must have a Key and a Value.");
		tags[count++] =
			(struct tag){xml_tree_text(tag, "Key"), xml_tree_text(tag, "Value")};
	}
	ASSERT(count <= most + 1); /* one over `most` is for tag_set_check to refuse */
	return tag_set_check(tags, count, most, err) != 0
		? -1
		: write_set(tags, count, arena, out_set, err);
}

enum next get_bucket_tagging_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct buffer body;
	struct span set;
	if (bucket_setting_find(exchange, BUCKET_TAGS, &set, &err) != 0)
		return exchange_fail(exchange, &err);
	if (set.len == 0)
		return s3_error_reply(exchange,
			&(struct s3_error){.kind = ERROR_NOT_FOUND,
				.code = "NoSuchTagSet",
				.message = "The TagSet does not exist"});
	buffer_init(&body, REPLY_MAX_BYTES);
	if (tagging_write_xml(set, exchange->arena, &body, &err) == 0)
		return exchange_reply_buffer(exchange, 200, "application/xml", &body);
	buffer_release(&body);
	return exchange_fail(exchange, &err);
}

enum next put_bucket_tagging_finish(struct exchange *exchange)
{
	struct span set;
	struct error err = {0};
	enum next next;
	struct span xml;
	if (!xml_body_check(exchange, &xml, &next))
		return next;
	if (parse_body(xml, exchange->arena, &set, &err) != 0)
		return exchange_fail(exchange, &err);
	return bucket_setting_store(exchange, BUCKET_TAGS, set, 200);
}

enum next delete_bucket_tagging_begin(struct exchange *exchange)
{
	return bucket_setting_drop(exchange, BUCKET_TAGS);
}

static int write_set(const struct tag *tags, size_t count, struct arena *arena,
	struct span *out_set, struct error *err)
{
	struct buffer blob;
	buffer_init(&blob, (count + 1) * TAG_BYTES);
	tag_set_write(tags, count, &blob);
	const int result = buffer_check(&blob, "the tag set", err);
	*out_set = result == 0 ? arena_copy(arena, buffer_span(&blob)) : (struct span){NULL, 0};
	buffer_release(&blob);
	return result;
}

static int parse_body(struct span xml, struct arena *arena, struct span *out_set, struct error *err)
{
	struct xml_node *root;
	if (xml_tree_parse(xml, "Tagging", arena, &root, err) != 0 ||
		xml_tree_check(root, "TagSet", "TagSet", err) != 0)
		return -1;
	const struct xml_node *const set = xml_tree_child(root, "TagSet");
	if (set == NULL)
		return error_set(err, ERROR_MALFORMED_XML, "A Tagging must have a TagSet.");
	return bucket_tagging_read(set, TAG_SET_BUCKET_MAX, arena, out_set, err);
}
