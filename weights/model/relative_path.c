#include "weights/model/relative_path.h"

#include <string.h>

#include "base/memory.h"

enum { NAME_MAX_BYTES = 255 };

static bool name_is_valid(struct span name);

bool relative_path_is_valid(struct span path)
{
	if (path.len == 0 || path.len > RELATIVE_PATH_MAX_BYTES || !span_is_utf8(path) ||
		path.data[path.len - 1] == '/')
		return false;
	for (size_t i = 0; i < path.len; i++)
		if (path.data[i] < 0x20 || path.data[i] == 0x7f)
			return false;
	struct span rest = path;
	struct span name;
	while (span_split(&rest, '/', &name))
		if (!name_is_valid(name))
			return false;
	return true;
}

char *relative_path_join(const char *folder, struct span path)
{
	const size_t folder_len = strlen(folder);
	char *const joined = memory_new(folder_len + 1 + path.len + 1);
	memcpy(joined, folder, folder_len);
	joined[folder_len] = '/';
	if (path.len > 0)
		memcpy(joined + folder_len + 1, path.data, path.len);
	return joined;
}

static bool name_is_valid(struct span name)
{
	return name.len > 0 && name.len <= NAME_MAX_BYTES && name.data[0] != '.';
}
