/* The index.json of a sharded checkpoint or delta: the file of each tensor, and free metadata.
 * Read-only after the parse; any thread. */
#ifndef WEIGHTS_MODEL_SHARD_INDEX_H
#define WEIGHTS_MODEL_SHARD_INDEX_H

#include "base/error.h"
#include "weights/model/json_scan.h"

struct shard_index;

/* `path` names the file in messages. Fails with invalid when a tensor is given twice or a file name
 * leads out of the folder. Skips unknown members. */
struct shard_index *shard_index_parse(struct span json, const char *path, struct error *err);
/* The same from pairs of tensor and file, in any order. Their texts must outlive the index. */
struct shard_index *shard_index_of(
	const struct json_scan_pair *pairs, size_t count, const char *path, struct error *err);
void shard_index_free(struct shard_index *index); /* NULL is fine */

/* Pairs of a tensor (key) and its file (value), sorted by tensor. */
size_t shard_index_count(const struct shard_index *index);
const struct json_scan_pair *shard_index_pair(const struct shard_index *index, size_t at);
/* Each file once, sorted. */
size_t shard_index_file_count(const struct shard_index *index);
struct span shard_index_file(const struct shard_index *index, size_t at);
bool shard_index_names(const struct shard_index *index, struct span file);
/* The place of a file that the index names. */
size_t shard_index_find_file(const struct shard_index *index, struct span file);
/* The members of "metadata" that are strings, in the order written. */
size_t shard_index_metadata_count(const struct shard_index *index);
const struct json_scan_pair *shard_index_metadata(const struct shard_index *index, size_t at);

#endif
