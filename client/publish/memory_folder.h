/* Finds a private folder for a state that lives no longer than its owner: in memory, or on a disk
 * where there is too little of that. */
#ifndef CLIENT_PUBLISH_MEMORY_FOLDER_H
#define CLIENT_PUBLISH_MEMORY_FOLDER_H

#include "client/local/memory_places.h"
#include "client/local/private_folder.h"
#include "client/work/output.h"

/* Makes the folder in the first place that has room for `bytes`, for private_folder_remove. Notes
 * on `output` when that is not memory. no_space when neither has it. */
int memory_folder_make(struct private_folder *folder, const struct memory_places *places,
	uint64_t bytes, const struct output *output, struct error *err);

#endif
