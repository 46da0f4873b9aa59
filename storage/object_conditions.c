#include "storage/object.h"

/* One member of a list: W/"x", "x" or x as some clients send it. */
static bool member_matches(const struct span member, const struct span etag)
{
	struct span text = span_trim(member);
	if (text.len >= 2 && (text.data[0] == 'W' || text.data[0] == 'w') && text.data[1] == '/')
		text = span_slice(text, 2, text.len);
	if (text.len >= 2 && text.data[0] == '"' && text.data[text.len - 1] == '"')
		text = span_slice(text, 1, text.len - 2);
	return span_equal(text, etag);
}

/* Entity tags of ours hold no commas, so a comma always parts two members. */
static bool list_matches(const struct span list, const char *const etag)
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

int object_conditions_check(const struct object_conditions *const conditions, const char *const etag, struct error *const err)
{
	if (conditions->if_match.len > 0 && etag == NULL)
		return error_set(err, ERROR_NO_KEY, "If-Match was given and the object does not exist.");
	if (conditions->if_match.len > 0 && !list_matches(conditions->if_match, etag))
		return error_set(err, ERROR_PRECONDITION, "If-Match does not hold: the object's ETag is \"%s\".", etag);
	if (conditions->if_none_match.len > 0 && etag != NULL && list_matches(conditions->if_none_match, etag))
		return error_set(err, ERROR_PRECONDITION, "If-None-Match does not hold: the object exists with ETag \"%s\".", etag);
	return 0;
}
