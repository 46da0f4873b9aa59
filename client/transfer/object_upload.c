#include "client/transfer/object_upload.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/remote/remote_hub.h"
#include "client/remote/remote_object.h"
#include "client/transfer/xet_upload.h"

enum { XET_MIN_BYTES = 64 * 1024 };

static bool wants_xet(struct object_upload *upload);
static int upload_xet(struct object_upload *upload, struct xet_access *access, struct error *err);
static int upload_plain(struct object_upload *upload, struct error *err);
static int upload_open(struct object_upload *upload, int fd, struct error *err);

/* If the server refuses the upload over Xet, a plain one succeeds or gives the reason. */
int object_upload_run(struct object_upload *upload, struct error *err)
{
	struct error failure = {0};
	ASSERT(upload->name.key.len > 0);
	if (!wants_xet(upload))
		return upload_plain(upload, err);
	struct xet_access *const access =
		xet_access_open(upload->remote, upload->name.bucket, true, &failure);
	const int result = access == NULL ? -1 : upload_xet(upload, access, &failure);
	xet_access_close(access);
	if (result == 0)
		return 0;
	if (session_wants_plain(&failure))
		return upload_plain(upload, err);
	*err = failure;
	return -1;
}

/* Whether to upload over Xet. Also sets upload->size then. Small files are cheaper in one plain
 * request; streams and keys that the Hub face does not take are only possible so. */
static bool wants_xet(struct object_upload *upload)
{
	struct file_facts facts;
	struct error ignored = {0};
	if (upload->is_plain || upload->fd != NULL || !remote_hub_takes(upload->name.key))
		return false;
	if (file_facts_read(upload->path, &facts, &ignored) != 0)
		return false;
	upload->size = facts.size;
	return facts.size >= XET_MIN_BYTES;
}

static int upload_xet(struct object_upload *upload, struct xet_access *access, struct error *err)
{
	struct session *const session = upload->session;
	char *const cache_path = hash_cache_default_path();
	struct hash_cache *const cache = hash_cache_open(session->files, cache_path);
	struct progress *const reading = progress_new("hashing", upload->size, session->progress);
	struct progress *const progress =
		progress_new("uploading", upload->size, session->progress);
	const struct xet_upload xet = {
		.options = &session->remote_options,
		.own = upload->remote,
		.access = access,
		.bucket = upload->name.bucket,
		.parallel = session_parallel(session),
		.cache = cache,
		.reading = reading,
		.progress = progress,
	};
	const struct xet_upload_file file = {.path = upload->path, .key = upload->name.key};
	const int result = xet_upload(&xet, &file, 1, err);
	upload->sent = atomic_load(&xet_access_traffic(access)->sent);
	progress_free(reading);
	progress_free(progress);
	hash_cache_close(cache);
	free(cache_path);
	return result;
}

static int upload_plain(struct object_upload *upload, struct error *err)
{
	if (upload->fd != NULL)
		return upload_open(upload, *upload->fd, err);
	const int fd =
		open(upload->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* no wait for a pipe */
	if (fd < 0)
		return error_set_errno(err, "opening %s", upload->path);
	const int result = upload_open(upload, fd, err);
	close(fd);
	return result;
}

static int upload_open(struct object_upload *upload, int fd, struct error *err)
{
	struct stat facts;
	if (fstat(fd, &facts) != 0)
		return error_set_errno(err, "looking at %s", upload->path);
	if (!S_ISREG(facts.st_mode))
		return error_set(err, ERROR_INVALID, "%s is not a regular file", upload->path);
	upload->size = (uint64_t)facts.st_size;
	upload->sent = upload->size;
	char *const target = remote_object_target(upload->name.bucket, upload->name.key);
	struct progress *const progress =
		progress_new("uploading", upload->size, upload->session->progress);
	const struct remote_object_body body = {
		.fd = fd, .size = upload->size, .path = upload->path, .progress = progress};
	const int result = remote_object_put(upload->remote, target, &body, err);
	progress_free(progress);
	free(target);
	return result;
}
