/* No message tells what the object has instead, because a caller that may write need not be allowed
 * to read. */
#include <string.h>

#include "storage/objects/object_row.h"

static int check_etags(
	const struct object_conditions *conditions, const char *etag, struct error *err);
static bool list_matches(struct span list, const char *etag);
static bool member_matches(struct span member, struct span etag);

int object_conditions_check(
	const struct object_conditions *conditions, const struct object *object, struct error *err)
{
	const bool exists = object != NULL && !object->is_marker;
	if (check_etags(conditions, exists ? object->etag : NULL, err) != 0)
		return -1;
	if (!exists)
		return conditions->has_size || conditions->has_modified
			? error_set(err, ERROR_NO_KEY,
				  "A size or time was demanded and the object does not exist.")
			: 0;
	if (conditions->has_size && conditions->size != object->size)
		return error_set(err, ERROR_PRECONDITION, "The object does not have %llu bytes.",
			(unsigned long long)conditions->size);
	if (conditions->has_modified &&
		conditions->modified_ms / 1000 != object->modified_ms / 1000)
		return error_set(
			err, ERROR_PRECONDITION, "The object was last modified at another time.");
	return 0;
}

/* A marker has no ETag that a tag could match; `*`, size and time can hold. */
int object_conditions_check_delete(const struct object_conditions *conditions,
	const struct version *version, struct error *err)
{
	struct object object = {.size = version->size, .modified_ms = version->modified_ms};
	memcpy(object.etag, version->etag, OBJECT_ETAG_BYTES);
	return object_conditions_check(conditions, &object, err);
}

int object_conditions_check_current(const struct object_conditions *conditions,
	const struct version *current, struct error *err)
{
	if (current == NULL || current->is_marker)
		return object_conditions_check(conditions, NULL, err);
	return object_conditions_check_delete(conditions, current, err);
}

struct object_conditions object_conditions_copy(
	const struct object_conditions *conditions, struct arena *arena)
{
	struct object_conditions copy = *conditions;
	copy.if_match = arena_copy(arena, conditions->if_match);
	copy.if_none_match = arena_copy(arena, conditions->if_none_match);
	return copy;
}

static int check_etags(
	const struct object_conditions *conditions, const char *etag, struct error *err)
{
	if (conditions->if_match.len > 0 && etag == NULL)
		return error_set(
			err, ERROR_NO_KEY, "If-Match was given and the object does not exist.");
	if (conditions->if_match.len > 0 && !list_matches(conditions->if_match, etag))
		return error_set(err, ERROR_PRECONDITION,
			"If-Match does not hold: the object has another ETag.");
	if (conditions->if_none_match.len > 0 && etag != NULL &&
		list_matches(conditions->if_none_match, etag))
		return error_set(err, ERROR_PRECONDITION,
			"If-None-Match does not hold: such an object exists.");
	return 0;
}

/* Our ETags contain no commas, so a comma always separates two members. */
static bool list_matches(struct span list, const char *etag)
{
	if (span_equal_text(span_trim(list), "*"))
		return true;
	struct span rest = list;
	struct span member;
	while (span_split(&rest, ',', &member))
		if (member_matches(member, span_text(etag)))
			return true;
	return false;
}

/* Whether one member of a list (W/"x", "x" or x, as some clients send it) is this ETag. */
static bool member_matches(struct span member, struct span etag)
{
	struct span text = span_trim(member);
	if (text.len >= 2 && (text.data[0] == 'W' || text.data[0] == 'w') && text.data[1] == '/')
		text = span_slice(text, 2, text.len);
	if (text.len >= 2 && text.data[0] == '"' && text.data[text.len - 1] == '"')
		text = span_slice(text, 1, text.len - 2);
	return span_equal(text, etag);
}
