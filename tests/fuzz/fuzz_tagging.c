/* Any bytes as x-amz-tagging and as a Tagging document: what is taken is written, sorted by key,
 * and read back as the same set. */
#include "api/s3/request/tagging.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 10 };

static struct span sorted(struct arena *arena, struct span tags)
{
	struct tag *list;
	struct buffer blob;
	struct error err = {0};
	size_t count;
	if (tags.len == 0)
		return tags;
	ASSERT(tag_set_read(tags, arena, &list, &count, &err) == 0);
	tag_set_sort(list, count);
	buffer_init(&blob, tags.len);
	tag_set_write(list, count, &blob);
	const struct span copy = arena_copy(arena, buffer_span(&blob));
	buffer_release(&blob);
	return copy;
}

static void check(struct arena *arena, struct span tags)
{
	struct buffer xml;
	struct span again;
	struct error err = {0};
	buffer_init(&xml, 1024 * 1024);
	ASSERT(tag_set_count(tags) <= MOST);
	ASSERT(tagging_write_xml(tags, arena, &xml, &err) == 0 && !buffer_failed(&xml));
	/* A control character stands as a reference that XML 1.0 does not allow: that document is
	 * for people only. */
	if (tagging_read_xml(buffer_span(&xml), MOST, arena, &again, &err) == 0)
		ASSERT(span_equal(sorted(arena, tags), again));
	else
		ASSERT(err.kind == ERROR_MALFORMED_XML);
	buffer_release(&xml);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *const arena = arena_new(16 * 1024 * 1024);
	struct span tags;
	struct error err = {0};
	const struct span text = span_of(data, size);
	const bool is_document = size > 0 && data[0] == '<';
	const int result = is_document ? tagging_read_xml(text, MOST, arena, &tags, &err)
				       : tagging_read_header(text, MOST, arena, &tags, &err);
	if (result == 0)
		check(arena, tags);
	else
		ASSERT(err.kind == ERROR_MALFORMED_XML || err.kind == ERROR_BAD_TAG ||
			err.kind == ERROR_TOO_MANY_TAGS || err.kind == ERROR_INVALID ||
			err.kind == ERROR_NO_MEMORY);
	arena_free(arena);
	return 0;
}
