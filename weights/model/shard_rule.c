#include "weights/model/shard_rule.h"

#include <string.h>

static bool is_directly_inside(struct span path, const char *suffix);

unsigned shard_rule_find_index(const struct span *paths, size_t count, size_t out[2])
{
	unsigned found = 0;
	for (size_t i = 0; i < count; i++) {
		if (span_equal_text(paths[i], SHARD_RULE_INDEX_NAME)) {
			out[0] = i;
			return 1;
		}
		if (found < 2 && shard_rule_is_index(paths[i]))
			out[found++] = i;
	}
	return found;
}

bool shard_rule_takes(const struct shard_index *index, struct span path)
{
	return index == NULL ? shard_rule_is_top(path) : shard_index_names(index, path);
}

bool shard_rule_is_top(struct span path)
{
	return is_directly_inside(path, ".safetensors");
}

bool shard_rule_is_index(struct span path)
{
	return is_directly_inside(path, ".safetensors.index.json");
}

static bool is_directly_inside(struct span path, const char *suffix)
{
	return span_ends_text(path, suffix) &&
		(path.len == 0 || memchr(path.data, '/', path.len) == NULL);
}
