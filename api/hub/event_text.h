/* Prints the event of changed files, and the cursors of events. A cursor is the position of a
 * stream. It is sealed, because its numbers count the changes of all buckets. No two cursors are
 * equal, so that a reader cannot even see that nothing has changed between them. */
#ifndef API_HUB_EVENT_TEXT_H
#define API_HUB_EVENT_TEXT_H

#include "base/digest/seal.h"
#include "storage/core/change_feed.h"
#include "storage/files/tree.h"

enum { EVENT_CURSOR_BYTES = 112 };

struct event_cursor {
	uint64_t life; /* of the feed that the position belongs to */
	int64_t bucket;
	struct change_position position;
};
void event_cursor_print(const struct event_cursor *cursor, const uint8_t key[SEAL_KEY_BYTES],
	char out[EVENT_CURSOR_BYTES]);
/* False when the text is not a cursor that was sealed with this key. */
bool event_cursor_parse(
	struct span text, const uint8_t key[SEAL_KEY_BYTES], struct event_cursor *out);
/* Whether the text may be a cursor of an earlier version, or of a server with another master
 * key. */
bool event_cursor_is_like(struct span text);

struct event_change {
	struct span path;
	bool existed;                  /* before the changes */
	const struct tree_entry *file; /* now; NULL: it does not exist */
};
/* Prints `event: changes`. Leaves out files that neither existed nor exist, and prints nothing when
 * all are such files. */
void event_text_changes(
	struct buffer *out, const char *cursor, const struct event_change *changes, size_t count);

#endif
