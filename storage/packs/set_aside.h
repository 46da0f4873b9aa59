/* The folder DIR/set-aside, where a start puts what no row of the catalog names and nothing proves
 * to be refuse (pack_recovery.h), and what was kept of damaged logs. What a catalog names again is
 * brought back by itself; the rest goes by the operator's word alone. One thread at a time. */
#ifndef STORAGE_PACKS_SET_ASIDE_H
#define STORAGE_PACKS_SET_ASIDE_H

#include "base/file.h"

struct set_aside_file {
	char *name;
	uint64_t bytes;
};
struct set_aside {
	struct set_aside_file *files; /* by name */
	size_t count;
	uint64_t bytes; /* of all */
};
/* `folder`: the data folder. Nothing is there: 0, and an empty list. */
int set_aside_list(const char *folder, struct set_aside *out, struct error *err);
void set_aside_release(struct set_aside *aside);
/* For good. not_found when nothing of this name is there. */
int set_aside_drop(
	const struct file_ops *files, const char *folder, const char *name, struct error *err);

#endif
