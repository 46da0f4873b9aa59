#include "weights/model/unnamed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/encode.h"
#include "base/file.h"
#include "base/random.h"
#include "weights/model/relative_path.h"

enum { TOKEN_BYTES = 16 };

static int make(const char *folder);

int unnamed_file_open(struct unnamed_file *file, const char *folder, struct error *err)
{
	const char *const chosen = getenv("TMPDIR");
	*file = (struct unnamed_file){.fd = make(folder)};
	if (file->fd < 0 && (errno == EACCES || errno == EROFS || errno == EPERM))
		file->fd = make(chosen != NULL && chosen[0] != '\0' ? chosen : "/tmp");
	return file->fd >= 0 ? 0 : error_set_errno(err, "cannot make a file in '%s'", folder);
}

int unnamed_file_add(struct unnamed_file *file, struct span piece, struct error *err)
{
	ASSERT(file->fd >= 0);
	if (file_write_at(file_system(), file->fd, piece, (off_t)file->bytes, "an unpacked delta",
		    err) != 0)
		return -1;
	file->bytes += piece.len;
	return 0;
}

int unnamed_file_map(const struct unnamed_file *file, struct span *out_bytes, struct error *err)
{
	ASSERT(file->fd >= 0);
	*out_bytes = (struct span){0};
	if (file->bytes == 0)
		return 0;
	void *const address = mmap(NULL, (size_t)file->bytes, PROT_READ, MAP_SHARED, file->fd, 0);
	if (address == MAP_FAILED)
		return error_set_errno(err, "cannot map an unpacked delta");
	*out_bytes = span_of(address, (size_t)file->bytes);
	return 0;
}

void unnamed_file_close(struct unnamed_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

static int make(const char *folder)
{
	const struct file_ops *const ops = file_system();
	uint8_t token[TOKEN_BYTES];
	char name[2 * TOKEN_BYTES + 16] = ".unpacked-";
	random_bytes(token, sizeof(token));
	encode_hex(span_of(token, sizeof(token)), name + strlen(name));
	char *const path = relative_path_join(folder, span_text(name));
	const int fd = ops->open(ops, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	const int reason = errno;
	if (fd >= 0)
		(void)ops->unlink(ops, path);
	free(path);
	errno = reason;
	return fd;
}
