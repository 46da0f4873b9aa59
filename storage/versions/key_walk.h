/* The position of a listing among the keys of a bucket. Keys with a common prefix are rolled up by
 * seeking past them. Internal to storage; one thread at a time. */
#ifndef STORAGE_VERSIONS_KEY_WALK_H
#define STORAGE_VERSIONS_KEY_WALK_H

#include "base/buffer.h"

enum { KEY_WALK_TEXT_MAX_BYTES = 8 * 1024 };

struct key_walk {
	struct span prefix;
	struct span delimiter; /* empty: none */
	struct buffer from;    /* where the next seek begins, inclusive */
	bool ended;            /* no key follows */
};

/* Starts behind `after` (exclusive); a common prefix that `after` is or lies below is skipped
 * whole. invalid when a text is too long. The texts must live as long as the walk. */
int key_walk_start(struct key_walk *walk, struct span prefix, struct span delimiter,
	struct span after, struct error *err);
void key_walk_release(struct key_walk *walk);
/* Whether the key, which must begin with `prefix`, is rolled up into *out_common; false when it is
 * listed itself. */
bool key_walk_roll_up(const struct key_walk *walk, struct span key, struct span *out_common);
/* Moves to the first key behind all keys that begin with `common`. */
void key_walk_seek_past(struct key_walk *walk, struct span common);

#endif
