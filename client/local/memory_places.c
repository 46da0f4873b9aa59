#include "client/local/memory_places.h"

#include <stdlib.h>

struct memory_places memory_places_find(void)
{
	const char *const disk = getenv("TMPDIR");
	return (struct memory_places){
		.memory = "/dev/shm", .disk = disk != NULL && disk[0] == '/' ? disk : "/tmp"};
}
