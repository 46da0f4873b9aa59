#include "weights/model/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LENGTH_BYTES = 8 };

static int map(int fd, const char *path, struct span *out_bytes, struct error *err);

int mapped_file_open(const char *path, struct span *out_bytes, struct error *err)
{
	/* O_NONBLOCK, so that a pipe in the place of a file does not block the open. */
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return error_set_errno(err, "cannot open '%s'", path);
	const int result = map(fd, path, out_bytes, err);
	close(fd);
	return result;
}

void mapped_file_close(struct span bytes)
{
	if (bytes.len > 0)
		munmap((void *)(uintptr_t)bytes.data, bytes.len);
}

struct safetensors *mapped_file_safetensors(struct span bytes, const char *path,
	struct span *out_header, struct span *out_data, struct error *err)
{
	uint64_t size = 0;
	if (safetensors_header_size(span_slice(bytes, 0, LENGTH_BYTES), bytes.len, &size, err) !=
		0) {
		error_wrap(err, "'%s'", path);
		return NULL;
	}
	*out_header = span_slice(bytes, 0, LENGTH_BYTES + (size_t)size);
	*out_data = span_slice(bytes, out_header->len, bytes.len);
	return safetensors_parse(
		span_slice(*out_header, LENGTH_BYTES, (size_t)size), out_data->len, path, err);
}

static int map(int fd, const char *path, struct span *out_bytes, struct error *err)
{
	struct stat facts;
	if (fstat(fd, &facts) != 0)
		return error_set_errno(err, "cannot read the size of '%s'", path);
	if (!S_ISREG(facts.st_mode))
		return error_set(err, ERROR_INVALID, "'%s' is not a regular file", path);
	if (facts.st_size == 0) {
		*out_bytes = (struct span){0};
		return 0;
	}
	const size_t len = (size_t)facts.st_size;
	void *const address = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	if (address == MAP_FAILED)
		return error_set_errno(err, "cannot map '%s'", path);
	/* This is only advice; its failure does no harm. */
	(void)madvise(address, len, MADV_SEQUENTIAL);
	*out_bytes = span_of(address, len);
	return 0;
}
