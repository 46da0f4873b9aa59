#include "client/local/kept_mapping.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>

static bool is_of(const struct kept_mapping *mapping, const struct stat *facts);

uint8_t *kept_mapping_of(struct kept_mapping *mapping, int fd)
{
	struct stat facts;
	if (fstat(fd, &facts) != 0 || facts.st_size <= 0)
		return NULL;
	if (is_of(mapping, &facts))
		return mapping->bytes;
	kept_mapping_release(mapping);
	void *const bytes =
		mmap(NULL, (size_t)facts.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED)
		return NULL;
	*mapping = (struct kept_mapping){.bytes = bytes,
		.size = (size_t)facts.st_size,
		.device = facts.st_dev,
		.inode = facts.st_ino};
	return mapping->bytes;
}

void kept_mapping_release(struct kept_mapping *mapping)
{
	if (mapping == NULL || mapping->bytes == NULL)
		return;
	munmap(mapping->bytes, mapping->size);
	*mapping = (struct kept_mapping){0};
}

/* An inode that is mapped is not given to another file. */
static bool is_of(const struct kept_mapping *mapping, const struct stat *facts)
{
	return mapping->bytes != NULL && mapping->size == (size_t)facts->st_size &&
		mapping->device == facts->st_dev && mapping->inode == facts->st_ino;
}
