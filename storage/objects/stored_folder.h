/* The files of a local folder as hidden versions, which scratch keeps until something names them
 * (scratch.h). Internal to storage. */
#ifndef STORAGE_OBJECTS_STORED_FOLDER_H
#define STORAGE_OBJECTS_STORED_FOLDER_H

#include "storage/core/store.h"
#include "wire/step_message.h"

struct stored_file {
	char *name; /* its path in the folder */
	int64_t version;
	uint64_t size;
};
struct stored_folder {
	struct stored_file *files;
	size_t count;
};
/* Stores every file below `folder`; the key is `prefix` and the file's path. On failure all
 * versions are released. Release the struct in any case. Blocks. */
int stored_folder_put(struct stored_folder *stored, struct store *store, int64_t bucket,
	const char *folder, const char *prefix, struct error *err);
/* `taken`: a committed change named and released the versions; else they are released here. */
void stored_folder_release(struct stored_folder *stored, struct store *store, bool taken);

#endif
