/* The header of an object that is a safetensors file, read by ranges. Internal to storage. */
#ifndef STORAGE_OBJECTS_SHARD_HEADER_H
#define STORAGE_OBJECTS_SHARD_HEADER_H

#include "storage/versions/object.h"
#include "weights/model/safetensors.h"

struct shard_header {
	struct buffer bytes; /* the length and the JSON, as stored */
	struct safetensors *tensors;
};
/* `name` is for messages. invalid when the object is not a safetensors file. Release it in either
 * case. */
int shard_header_read(struct store *store, const struct object *object, const char *name,
	struct shard_header *out, struct error *err);
void shard_header_release(struct shard_header *header);

#endif
