/* A set is small, so checks compare each pair of keys. A blob is walked twice when it is read: once
 * to count its tags, once to take them. */
#include "storage/buckets/tag_set.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_MAX_CHARACTERS = 128, VALUE_MAX_CHARACTERS = 256 };

static int check_tag(const struct tag *tag, struct error *err);
static size_t count_characters(struct span text);
static bool has_odd_characters(struct span text);
static int tag_set_compare(const void *left, const void *right);
static void add_text(struct buffer *out, struct span text);
static bool take_tag(struct span *rest, struct tag *out);
static bool take_text(struct span *rest, struct span *out);

int tag_set_check(const struct tag *tags, size_t count, size_t most, struct error *err)
{
	if (count > most)
		return error_set(err, ERROR_TOO_MANY_TAGS,
			"There are %zu tags; at most %zu are allowed.", count, most);
	for (size_t i = 0; i < count; i++) {
		if (check_tag(&tags[i], err) != 0)
			return -1;
		for (size_t k = 0; k < i; k++)
			if (span_equal(tags[i].key, tags[k].key))
				return error_set(err, ERROR_BAD_TAG,
					"The tag key '%.*s' is given twice.", (int)tags[i].key.len,
					(const char *)tags[i].key.data);
	}
	return 0;
}

void tag_set_sort(struct tag *tags, size_t count)
{
	if (count > 1)
		qsort(tags, count, sizeof(*tags), tag_set_compare);
}

void tag_set_write(const struct tag *tags, size_t count, struct buffer *out)
{
	for (size_t i = 0; i < count; i++) {
		add_text(out, tags[i].key);
		add_text(out, tags[i].value);
	}
}

unsigned tag_set_count(struct span blob)
{
	struct span rest = blob;
	struct tag tag;
	unsigned count = 0;
	while (take_tag(&rest, &tag))
		count++;
	return count;
}

int tag_set_read(struct span blob, struct arena *arena, struct tag **out, size_t *out_count,
	struct error *err)
{
	const size_t count = tag_set_count(blob);
	struct tag *const tags = arena_take_array(arena, count + 1, sizeof(*tags));
	struct span rest = blob;
	if (tags == NULL)
		return error_set(
			err, ERROR_NO_MEMORY, "The request's memory ran out while reading tags.");
	for (size_t i = 0; i < count; i++)
		take_tag(&rest, &tags[i]);
	if (rest.len > 0)
		return error_set(err, ERROR_CORRUPT, "The stored tags are malformed.");
	*out = tags;
	*out_count = count;
	return 0;
}

static int check_tag(const struct tag *tag, struct error *err)
{
	if (!span_is_utf8(tag->key) || !span_is_utf8(tag->value))
		return error_set(err, ERROR_BAD_TAG, "The keys and values of tags must be UTF-8.");
	if (tag->key.len == 0 || count_characters(tag->key) > KEY_MAX_CHARACTERS)
		return error_set(err, ERROR_BAD_TAG,
			"The key of a tag must have 1 to %d characters.", KEY_MAX_CHARACTERS);
	if (count_characters(tag->value) > VALUE_MAX_CHARACTERS)
		return error_set(err, ERROR_BAD_TAG,
			"The value of a tag must have at most %d characters.",
			VALUE_MAX_CHARACTERS);
	if (has_odd_characters(tag->key) || has_odd_characters(tag->value))
		return error_set(err, ERROR_BAD_TAG,
			"Tags may have only letters, digits, spaces and + - = . _ : / @.");
	if (span_starts(tag->key, span_text("aws:")))
		return error_set(
			err, ERROR_BAD_TAG, "The keys of tags must not begin with 'aws:'.");
	return 0;
}

/* Counts the bytes that begin a character of UTF-8. */
static size_t count_characters(struct span text)
{
	size_t count = 0;
	for (size_t i = 0; i < text.len; i++)
		if ((text.data[i] & 0xC0) != 0x80)
			count++;
	return count;
}

static bool has_odd_characters(struct span text)
{
	for (size_t i = 0; i < text.len; i++) {
		const uint8_t byte = text.data[i];
		const bool is_alphanumeric = (byte >= 'a' && byte <= 'z') ||
			(byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
		if (!is_alphanumeric && byte < 0x80 &&
			(byte == '\0' || strchr(" +-=._:/@", byte) == NULL))
			return true;
	}
	return false;
}

static int tag_set_compare(const void *left, const void *right)
{
	return span_compare(((const struct tag *)left)->key, ((const struct tag *)right)->key);
}

static void add_text(struct buffer *out, struct span text)
{
	ASSERT(text.len <= UINT16_MAX);
	const uint16_t len = htole16((uint16_t)text.len);
	buffer_add(out, &len, sizeof(len));
	buffer_add_span(out, text);
}

static bool take_tag(struct span *rest, struct tag *out)
{
	return take_text(rest, &out->key) && take_text(rest, &out->value);
}

static bool take_text(struct span *rest, struct span *out)
{
	uint16_t len;
	if (rest->len < sizeof(len))
		return false;
	memcpy(&len, rest->data, sizeof(len));
	len = le16toh(len);
	if (len > rest->len - sizeof(len))
		return false;
	*out = span_slice(*rest, sizeof(len), len);
	*rest = span_slice(*rest, sizeof(len) + len, rest->len);
	return true;
}
