/* Which objects of an anchor are the shards of its checkpoint (weights/model/shard_rule.h).
 * Internal to storage. */
#ifndef STORAGE_OBJECTS_SHARD_CHOICE_H
#define STORAGE_OBJECTS_SHARD_CHOICE_H

#include "storage/versions/object.h"

/* Marks the shards among `count` files in out_is_shard. `index` is the object of the file that
 * shard_rule_find_index found; NULL: there is none. An object that is not an index, or that names
 * files which are not there, counts as no index, since nobody who publishes has to send one. When
 * no file is a shard by the rule, every .safetensors is one: trainers that speak the protocol
 * themselves may put each into a folder. Fails only when the index cannot be read. */
int shard_choice_mark(struct store *store, const struct object *index, const struct span *names,
	size_t count, bool *out_is_shard, struct error *err);
/* Marks every .safetensors. Returns whether that changed a mark. */
bool shard_choice_mark_all(const struct span *names, size_t count, bool *is_shard);

#endif
