/* The files of a local folder as hidden versions, held as storage/objects/scratch.h tells until
 * somebody names them. Internal to storage. */
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
/* Stores every file below `folder`; their keys are `prefix` and the file's path. On failure nothing
 * stays held. Release in any case. Blocking. */
int stored_folder_put(struct stored_folder *stored, struct store *store, int64_t bucket,
	const char *folder, const char *prefix, struct error *err);
/* `taken`: they were named and released in a change that was committed; otherwise they are let
 * go. */
void stored_folder_release(struct stored_folder *stored, struct store *store, bool taken);

#endif
