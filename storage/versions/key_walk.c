/* The first key behind all keys that begin with a text is that text with its last byte raised by 1,
 * after bytes of 0xFF at its end were cut off. When nothing is left, no key follows. */
#include "storage/versions/key_walk.h"

#include <string.h>

void key_walk_seek_past(struct key_walk *walk, struct span common)
{
	size_t len = common.len;
	while (len > 0 && common.data[len - 1] == 0xFF)
		len--;
	walk->ended = len == 0;
	buffer_reset(&walk->from);
	if (len == 0)
		return;
	buffer_add(&walk->from, common.data, len);
	walk->from.data[len - 1]++;
}

bool key_walk_roll_up(const struct key_walk *walk, struct span key, struct span *out_common)
{
	ASSERT(key.len >= walk->prefix.len);
	if (walk->delimiter.len == 0)
		return false;
	const struct span rest = span_slice(key, walk->prefix.len, key.len);
	const uint8_t *const found = rest.len == 0
		? NULL
		: memmem(rest.data, rest.len, walk->delimiter.data, walk->delimiter.len);
	if (found == NULL)
		return false;
	*out_common = span_of(key.data, (size_t)(found - key.data) + walk->delimiter.len);
	return true;
}

int key_walk_start(struct key_walk *walk, struct span prefix, struct span delimiter,
	struct span after, struct error *err)
{
	struct span common;
	*walk = (struct key_walk){.prefix = prefix, .delimiter = delimiter};
	buffer_init(&walk->from, (size_t)2 * KEY_WALK_TEXT_MAX_BYTES);
	if (after.len > KEY_WALK_TEXT_MAX_BYTES || prefix.len > KEY_WALK_TEXT_MAX_BYTES)
		return error_set(err, ERROR_INVALID,
			"A prefix or position of a listing is over %d bytes.",
			KEY_WALK_TEXT_MAX_BYTES);
	if (span_compare(after, prefix) < 0) {
		buffer_add_span(&walk->from, prefix);
	} else if (!span_starts(after, prefix)) {
		walk->ended = true;
	} else if (key_walk_roll_up(walk, after, &common)) {
		key_walk_seek_past(walk, common);
	} else {
		buffer_add_span(&walk->from, after);
		if (after.len > 0)
			buffer_add_byte(&walk->from, 0); /* the smallest key above it */
	}
	return 0;
}

void key_walk_release(struct key_walk *walk)
{
	buffer_release(&walk->from);
}
