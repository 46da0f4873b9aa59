/* Server-sent events as text, and the cursors in them: where a stream stood, sealed, because its
 * numbers are of all that anybody changes. No two cursors are equal, so that nobody sees either
 * that they were for nothing new. */
#ifndef API_HUB_EVENT_TEXT_H
#define API_HUB_EVENT_TEXT_H

#include "base/digest/seal.h"
#include "storage/core/change_feed.h"
#include "storage/files/tree.h"

enum { EVENT_CURSOR_BYTES = 112 };

struct event_cursor {
	uint64_t life; /* of the feed that the position's number is of */
	int64_t bucket;
	struct change_position position;
};
void event_cursor_print(const struct event_cursor *cursor, const uint8_t key[SEAL_KEY_BYTES],
	char out[EVENT_CURSOR_BYTES]);
/* False when it is not a cursor that was sealed with this key. */
bool event_cursor_parse(
	struct span text, const uint8_t key[SEAL_KEY_BYTES], struct event_cursor *out);
/* Whether it may be one that an earlier version, or a server with another master key, gave out. */
bool event_cursor_is_like(struct span text);

struct event_change {
	struct span path;
	bool existed;                  /* before */
	const struct tree_entry *file; /* now; NULL: there is none */
};
/* An empty buffer with room for one event of any kind. */
void event_text_init(struct buffer *out);
/* `event: changes`, or nothing when nothing of it was and is there. */
void event_text_changes(
	struct buffer *out, const char *cursor, const struct event_change *changes, size_t count);
/* An event with one member. */
void event_text_simple(
	struct buffer *out, const char *event, const char *member, const char *value);
void event_text_ping(struct buffer *out);

#endif
