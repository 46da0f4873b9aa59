/* The folder DIR/set-aside. A start moves files there that no row of the catalog names and nothing
 * proves to be garbage (pack_recovery.h), and keeps damaged logs there. A file that a catalog names
 * again comes back by itself; the others are removed only by the operator. One thread at a time. */
#ifndef STORAGE_PACKS_SET_ASIDE_H
#define STORAGE_PACKS_SET_ASIDE_H

#include "base/file.h"

struct set_aside_file {
	char *name;
	uint64_t bytes;
};
struct set_aside {
	struct set_aside_file *files; /* sorted by name */
	size_t count;
	uint64_t bytes; /* of all files */
};
/* `folder` is the data folder. When there is nothing it returns 0 and an empty list. */
int set_aside_list(const char *folder, struct set_aside *out, struct error *err);
void set_aside_release(struct set_aside *aside);
/* Moves the file `path` there, as its name or NAME.1 and so on: nothing there is replaced. Durable
 * when it returns. exists when too many of that name are there. */
int set_aside_take(
	const struct file_ops *files, const char *folder, const char *path, struct error *err);
/* Removes a file for good. not_found when there is no file of this name. */
int set_aside_drop(
	const struct file_ops *files, const char *folder, const char *name, struct error *err);

#endif
