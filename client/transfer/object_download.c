#include "client/transfer/object_download.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "client/local/part_file.h"
#include "client/remote/remote_hub.h"
#include "client/transfer/xet_download.h"

enum { XET_MIN_BYTES = 256 * 1024, PATH_MAX_BYTES = 8192 };

static int check_folder(const char *path, struct error *err);
static bool is_folder(const char *path);
static int download_file(struct object_download *download, struct error *err);
static bool wants_xet(const struct object_download *download);
static bool lacks_seeds(const struct object_download *download);
static int download_xet(struct object_download *download, struct error *err);
static int download_hash(struct object_download *download, struct xet_access *access,
	const struct chunk_id *hash, struct error *err);
static int download_plain(struct object_download *download, struct error *err);

int object_download_check(const char *path, struct error *err)
{
	if (check_folder(path, err) != 0 || part_file_check_target(path, err) != 0)
		return -1;
	return is_folder(path)
		? error_set(err, ERROR_INVALID, "%s is a folder; name the file to write", path)
		: 0;
}

int object_download_run(struct object_download *download, struct error *err)
{
	ASSERT(download->path != NULL && download->target != NULL);
	download->part = part_file_path(download->path, ".part");
	download->progress =
		progress_new("downloading", download->facts.size, download->session->progress);
	const int result = download_file(download, err);
	progress_free(download->progress);
	free(download->part);
	return result;
}

static int check_folder(const char *path, struct error *err)
{
	const char *const slash = strrchr(path, '/');
	if (slash == NULL || slash == path)
		return 0;
	char *const folder = memory_copy_text(path);
	folder[slash - path] = '\0';
	const int result = is_folder(folder)
		? 0
		: error_set(err, ERROR_NOT_FOUND, "there is no folder %s to write to", folder);
	free(folder);
	return result;
}

static bool is_folder(const char *path)
{
	struct stat facts;
	return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

/* If the server refuses the download over Xet, a plain one succeeds or gives the reason. */
static int download_file(struct object_download *download, struct error *err)
{
	struct error failure = {0};
	if (!wants_xet(download))
		return download_plain(download, err);
	if (download_xet(download, &failure) == 0)
		return 0;
	if (session_wants_plain(&failure))
		return download_plain(download, err);
	*err = failure;
	return -1;
}

/* A small object is cheaper as a whole. So is a derived one, which the server would first have to
 * cut into chunks, unless there are local chunks that may save most of it. */
static bool wants_xet(const struct object_download *download)
{
	if (download->is_plain || download->facts.size < XET_MIN_BYTES ||
		!remote_hub_takes(download->name.key))
		return false;
	return !(download->facts.is_derived && download->facts.has_digest && lacks_seeds(download));
}

/* Whether there is neither a local file to take chunks from nor an earlier Xet download to
 * resume. */
static bool lacks_seeds(const struct object_download *download)
{
	char journal[PATH_MAX_BYTES];
	const int len = snprintf(journal, sizeof(journal), "%s.chunks", download->part);
	return download->seed_count == 0 && !file_exists(download->path) && len < PATH_MAX_BYTES &&
		!file_exists(journal);
}

/* Downloads over Xet, by the file hash that the server has for the object now. unsupported when the
 * server has none. */
static int download_xet(struct object_download *download, struct error *err)
{
	struct chunk_id hash;
	uint64_t size;
	struct xet_access *const access =
		xet_access_open(download->remote, download->name.bucket, false, err);
	if (access == NULL)
		return -1;
	int result = remote_hub_find(
		download->remote, download->name.bucket, download->name.key, &size, &hash, err);
	if (result == 0)
		result = error_set(
			err, ERROR_NOT_FOUND, "the server's Hub face does not know the object");
	else if (result > 0) {
		download->facts.size = size;
		result = download_hash(download, access, &hash, err);
	}
	xet_access_close(access);
	return result;
}

/* Downloads the object with this file hash. */
static int download_hash(struct object_download *download, struct xet_access *access,
	const struct chunk_id *hash, struct error *err)
{
	struct session *const session = download->session;
	char *const cache_path = hash_cache_default_path();
	struct hash_cache *const cache = hash_cache_open(session->files, cache_path);
	const struct xet_download xet = {
		.files = session->files,
		.options = &session->remote_options,
		.own = download->remote,
		.access = access,
		.parallel = session_parallel(session),
		.cache = cache,
		.progress = download->progress,
	};
	const struct xet_download_file file = {
		.hash = *hash,
		.size = download->facts.size,
		.name = download->target + 1,
		.path = download->path,
		.part_path = download->part,
		.seeds = download->seeds,
		.seed_count = download->seed_count,
	};
	const int result = xet_download(&xet, &file, 1, err);
	download->received += atomic_load(&xet_access_traffic(access)->received);
	hash_cache_close(cache);
	free(cache_path);
	return result;
}

static int download_plain(struct object_download *download, struct error *err)
{
	struct transfer_options transfer =
		session_transfer(download->session, download->remote, download->progress);
	transfer.received = &download->received;
	const struct transfer_download plain = {
		.target = download->target,
		.size = download->facts.size,
		.has_digest = download->facts.has_digest,
		.digest = download->facts.digest,
		.has_hash = download->facts.has_hash,
		.hash = download->facts.hash,
		.etag = download->facts.etag[0] != '\0' ? download->facts.etag : NULL,
		.path = download->path,
		.part_path = download->part,
	};
	return transfer_download(&transfer, &plain, 1, err);
}
