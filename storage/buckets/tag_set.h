/* A set of tags as one blob, for objects and buckets: for each tag the u16 length (little-endian)
 * and bytes of its key, then of its value, in the order given. docs/FORMAT.md, "Catalog". Pure
 * functions; any thread. */
#ifndef STORAGE_BUCKETS_TAG_SET_H
#define STORAGE_BUCKETS_TAG_SET_H

#include "base/arena.h"
#include "base/buffer.h"

enum {
	TAG_KEY_MAX_BYTES = 512,
	TAG_VALUE_MAX_BYTES = 1024,
	TAG_SET_OBJECT_MAX = 10,
	TAG_SET_BUCKET_MAX = 50
};

struct tag {               /* UTF-8 */
	struct span key;   /* 1..128 characters */
	struct span value; /* up to 256 characters */
};
/* too_many_tags when there are more than `most`. bad_tag when a key repeats or begins with "aws:",
 * a length is wrong, or a text is not UTF-8 or has ASCII other than letters, digits, spaces and + -
 * = . _ : / @. */
int tag_set_check(const struct tag *tags, size_t count, size_t most, struct error *err);
/* Sorts by key in byte order, as tags are shown. */
void tag_set_sort(struct tag *tags, size_t count);
/* Keys and values have at most 65,535 bytes, as tag_set_check ensures. */
void tag_set_write(const struct tag *tags, size_t count, struct buffer *out);
/* The texts stay in `blob`; the list lies in the arena. corrupt when the blob is malformed. */
int tag_set_read(struct span blob, struct arena *arena, struct tag **out, size_t *out_count,
	struct error *err);
unsigned tag_set_count(struct span blob); /* of the tags before any malformed one */

#endif
