/* A private folder in memory, for a state that lives no longer than its owner: below /dev/shm, or
 * on a disk where that is missing or too small. A folder that its owner left when it was killed is
 * removed when the same user makes the next one. */
#ifndef CLIENT_PUBLISH_MEMORY_FOLDER_H
#define CLIENT_PUBLISH_MEMORY_FOLDER_H

#include "base/file.h"
#include "client/work/output.h"

struct memory_folder {
	char *path;
	int lock_fd; /* shows others that the owner lives */
};

/* Where to look for room, in this order. */
struct memory_places {
	const char *memory; /* "/dev/shm" */
	const char *disk;   /* $TMPDIR, or "/tmp" */
};
struct memory_places memory_folder_places(void);

/* Makes the folder, with mode 0700, in the first place that has room for `bytes`. Notes on `output`
 * when that is not memory. no_space when neither has it. */
int memory_folder_open(struct memory_folder *folder, const struct memory_places *places,
	uint64_t bytes, const struct output *output, struct error *err);
/* Removes the folder with all that is in it. A zeroed one with lock_fd -1 is fine. */
void memory_folder_close(struct memory_folder *folder);

#endif
