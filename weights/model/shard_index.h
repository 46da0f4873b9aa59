/* The index.json of a sharded checkpoint or delta: which tensor lies in which file, and free
 * metadata. Read-only once parsed; any thread. */
#ifndef WEIGHTS_MODEL_SHARD_INDEX_H
#define WEIGHTS_MODEL_SHARD_INDEX_H

#include "base/error.h"
#include "weights/model/json_scan.h"

struct shard_index;

/* `path` names the file in messages. A tensor given twice and a file name that leads out of the
 * folder are invalid; members that are not known are skipped. */
struct shard_index *shard_index_parse(struct span json, const char *path, struct error *err);
/* The same from pairs of tensor and file, in any order; what they point to must stay. */
struct shard_index *shard_index_of(
	const struct json_scan_pair *pairs, size_t count, const char *path, struct error *err);
void shard_index_free(struct shard_index *index); /* NULL is fine */

/* Tensor (key) to file (value), sorted by tensor. */
size_t shard_index_count(const struct shard_index *index);
const struct json_scan_pair *shard_index_pair(const struct shard_index *index, size_t at);
/* Each file once, sorted. */
size_t shard_index_file_count(const struct shard_index *index);
struct span shard_index_file(const struct shard_index *index, size_t at);
/* of a file that the index names */
size_t shard_index_find_file(const struct shard_index *index, struct span file);
/* Those members of "metadata" that are strings, as written. */
size_t shard_index_metadata_count(const struct shard_index *index);
const struct json_scan_pair *shard_index_metadata(const struct shard_index *index, size_t at);

#endif
