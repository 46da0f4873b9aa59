/* Where state lies that lives no longer than its process (private_folder.h). */
#ifndef CLIENT_LOCAL_MEMORY_PLACES_H
#define CLIENT_LOCAL_MEMORY_PLACES_H

/* The first one with enough room is used. */
struct memory_places {
	const char *memory; /* "/dev/shm" */
	const char *disk;   /* $TMPDIR if it begins with '/', else "/tmp" */
};
/* Both are borrowed: from the environment until that changes. */
struct memory_places memory_places_find(void);

#endif
