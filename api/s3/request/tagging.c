/* Both forms are read into a list in the arena, which has room for one tag over the limit, so that
 * tag_set_check sees that there are too many. The document's shape is a table of element names by
 * depth, so every element that is not in it is refused. */
#include "api/s3/request/tagging.h"

#include "base/format/xml_reader.h"
#include "base/encode.h"

static const char no_room[] = "The tags do not fit the memory of a request.";

struct tag_list {
	struct arena *arena;
	struct tag *tags;
	size_t count; /* at most one over `most` */
	size_t most;
	bool has_key; /* of the open <Tag> */
	bool has_value;
};

static int start_list(struct tag_list *list, struct arena *arena, size_t most, struct error *err);
static bool decode(struct arena *arena, struct span text, struct span *out);
static bool has_tag(const struct tag_list *list, struct span key);
static int finish_list(const struct tag_list *list, struct span *out, struct error *err);
static int tagging_on_open(void *owner, size_t depth, struct span name, struct error *err);
static int tagging_on_close(
	void *owner, size_t depth, struct span name, struct span text, struct error *err);

int tagging_read_header(
	struct span header, size_t most, struct arena *arena, struct span *out, struct error *err)
{
	struct tag_list list;
	struct span rest = span_trim(header);
	struct span pair;
	if (start_list(&list, arena, most, err) != 0)
		return -1;
	while (list.count <= most && span_split(&rest, '&', &pair)) {
		struct tag *const tag = &list.tags[list.count];
		struct span name;
		if (pair.len == 0)
			continue;
		*tag = (struct tag){.value = {NULL, 0}};
		span_split(&pair, '=', &name);
		if (!decode(arena, name, &tag->key) || !decode(arena, pair, &tag->value) ||
			tag->key.len == 0 || has_tag(&list, tag->key))
			return error_set(err, ERROR_INVALID,
				"The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters"
				" without tag name duplicates.");
		list.count++;
	}
	return finish_list(&list, out, err);
}

int tagging_read_xml(
	struct span xml, size_t most, struct arena *arena, struct span *out, struct error *err)
{
	static const struct xml_reader_events events = {
		.open = tagging_on_open, .close = tagging_on_close};
	struct tag_list list;
	if (start_list(&list, arena, most, err) != 0 ||
		xml_reader_parse(xml, &events, &list, err) != 0)
		return -1;
	return finish_list(&list, out, err);
}

int tagging_write_xml(struct span tags, struct arena *arena, struct buffer *out, struct error *err)
{
	struct tag *list = NULL;
	size_t count = 0;
	struct xml_writer xml;
	if (tags.len > 0 && tag_set_read(tags, arena, &list, &count, err) != 0)
		return -1;
	tag_set_sort(list, count);
	xml_writer_begin(&xml, out, "Tagging", true);
	xml_writer_open(&xml, "TagSet");
	for (size_t i = 0; i < count; i++) {
		xml_writer_open(&xml, "Tag");
		xml_writer_text(&xml, "Key", list[i].key);
		xml_writer_text(&xml, "Value", list[i].value);
		xml_writer_close(&xml);
	}
	xml_writer_end(&xml);
	return 0;
}

static int start_list(struct tag_list *list, struct arena *arena, size_t most, struct error *err)
{
	*list = (struct tag_list){.arena = arena, .most = most};
	list->tags = arena_take_array(arena, most + 1, sizeof(*list->tags));
	return list->tags != NULL ? 0 : error_set(err, ERROR_NO_MEMORY, no_room);
}

static bool decode(struct arena *arena, struct span text, struct span *out)
{
	struct buffer decoded;
	buffer_init(&decoded, text.len + 1);
	const bool good = decode_percent(text, true, &decoded);
	if (good)
		*out = arena_copy(arena, buffer_span(&decoded));
	buffer_release(&decoded);
	return good;
}

static bool has_tag(const struct tag_list *list, struct span key)
{
	for (size_t i = 0; i < list->count; i++)
		if (span_equal(list->tags[i].key, key))
			return true;
	return false;
}

static int finish_list(const struct tag_list *list, struct span *out, struct error *err)
{
	struct buffer blob;
	ASSERT(list->count <= list->most + 1);
	*out = (struct span){0};
	if (tag_set_check(list->tags, list->count, list->most, err) != 0)
		return -1;
	if (list->count == 0)
		return 0;
	buffer_init(&blob, (list->most + 1) * (TAG_KEY_MAX_BYTES + TAG_VALUE_MAX_BYTES + 8));
	tag_set_write(list->tags, list->count, &blob);
	int result = buffer_check(&blob, "the tags", err);
	if (result == 0) {
		*out = arena_copy(list->arena, buffer_span(&blob));
		if (out->data == NULL)
			result = error_set(err, ERROR_NO_MEMORY, no_room);
	}
	buffer_release(&blob);
	return result;
}

static int tagging_on_open(void *owner, size_t depth, struct span name, struct error *err)
{
	static const struct {
		size_t depth;
		const char *name;
	} shape[] = {{1, "Tagging"}, {2, "TagSet"}, {3, "Tag"}, {4, "Key"}, {4, "Value"}};
	struct tag_list *const list = owner;
	bool known = false;
	for (size_t i = 0; i < sizeof(shape) / sizeof(shape[0]); i++)
		known = known || (shape[i].depth == depth && span_equal_text(name, shape[i].name));
	if (!known)
		return error_set(err, ERROR_MALFORMED_XML,
			"A Tagging document must not have an element %.*s at this place.",
			(int)(name.len < 64 ? name.len : 64), (const char *)name.data);
	if (depth == 3) {
		list->has_key = list->has_value = false;
		if (list->count > list->most)
			return error_set(
				err, ERROR_TOO_MANY_TAGS, "There are over %zu tags.", list->most);
		list->tags[list->count] = (struct tag){.value = {NULL, 0}};
	}
	return 0;
}

static int tagging_on_close(
	void *owner, size_t depth, struct span name, struct span text, struct error *err)
{
	static const char fault[] = "A Tag must have one Key and one Value.";
	struct tag_list *const list = owner;
	ASSERT(list->count <= list->most || depth < 3);
	if (depth == 4) {
		const bool is_key = span_equal_text(name, "Key");
		bool *const has = is_key ? &list->has_key : &list->has_value;
		struct tag *const tag = &list->tags[list->count];
		if (*has)
			return error_set(err, ERROR_MALFORMED_XML, fault);
		*has = true;
		*(is_key ? &tag->key : &tag->value) = arena_copy(list->arena, text);
	}
	if (depth != 3)
		return 0;
	if (!list->has_key || !list->has_value)
		return error_set(err, ERROR_MALFORMED_XML, fault);
	list->count++;
	return 0;
}
