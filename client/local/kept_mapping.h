/* A file of a private folder in memory, mapped for writing, and kept mapped from one call to the
 * next: then writing over it costs no page faults, and several threads write at a time. One thread
 * at a time. */
#ifndef CLIENT_LOCAL_KEPT_MAPPING_H
#define CLIENT_LOCAL_KEPT_MAPPING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct kept_mapping { /* zeroed: nothing is mapped */
	uint8_t *bytes;
	size_t size;
	dev_t device;
	ino_t inode;
};

/* The bytes of the file that is open as `fd` for reading and writing: the mapping that there is, or
 * a new one in its place. NULL when the file is empty or cannot be mapped. All of the file must
 * have its place on the file system, and nobody may shrink it while it is mapped. */
uint8_t *kept_mapping_of(struct kept_mapping *mapping, int fd);
/* A file that is removed takes its room until then. A zeroed mapping is fine, and so is NULL. */
void kept_mapping_release(struct kept_mapping *mapping);

#endif
