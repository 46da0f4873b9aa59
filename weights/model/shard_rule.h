/* Which files of a checkpoint folder are its shards. With an index they are the files that it
 * names, wherever these lie. Without one they are all *.safetensors directly in the folder. Every
 * other *.safetensors is a file like a tokenizer: nobody looks into it. Publishers, readers and the
 * server ask here, so that they agree. Any thread. */
#ifndef WEIGHTS_MODEL_SHARD_RULE_H
#define WEIGHTS_MODEL_SHARD_RULE_H

#include "weights/model/shard_index.h"

#define SHARD_RULE_INDEX_NAME "model.safetensors.index.json"

/* Finds the index among the paths of a checkpoint's files: model.safetensors.index.json, or else
 * the only *.safetensors.index.json directly in the folder. Returns how many there are to choose
 * from: 0 or 1; or 2 when there are several and none has the usual name, the first two of which are
 * then in `out`. */
unsigned shard_rule_find_index(const struct span *paths, size_t count, size_t out[2]);
/* `index` NULL: there is none. */
bool shard_rule_takes(const struct shard_index *index, struct span path);
/* Whether the file is a *.safetensors, or a *.safetensors.index.json, directly in the folder. */
bool shard_rule_is_top(struct span path);
bool shard_rule_is_index(struct span path);

#endif
