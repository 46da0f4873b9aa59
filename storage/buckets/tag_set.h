/* A set of tags as one blob, for objects and buckets: u16 length and bytes of each key and value,
 * little-endian, in the order given. docs/FORMAT.md, "Catalog". Pure functions. */
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
/* too_many_tags: over `most`. bad_tag: a key repeats or begins with "aws:", a length is wrong, a
 * text is not UTF-8 or holds ASCII other than letters, digits, blanks and + - = . _ : / @. */
int tag_set_check(const struct tag *tags, size_t count, size_t most, struct error *err);
/* By key, in the order of bytes: as they are shown. */
void tag_set_sort(struct tag *tags, size_t count);
void tag_set_write(const struct tag *tags, size_t count, struct buffer *out);
/* Tags that lie in `blob`; corrupt when malformed. */
int tag_set_read(struct span blob, struct arena *arena, struct tag **out, size_t *out_count,
	struct error *err);
unsigned tag_set_count(struct span blob);

#endif
