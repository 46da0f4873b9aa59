/* The file is fetched beside its place, under a name that a start removes when this is broken
 * off. */
#include "storage/fsck/pack_return.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "storage/core/pack_row.h"
#include "storage/packs/pack_format.h"
#include "storage/packs/set_aside.h"

enum { PATH_BYTES = 4096, REST_BYTES = 256 * 1024 };

struct pack_return {
	const char *folder;
	const struct file_ops *files;
	struct db *db; /* the catalog */
	struct backup_manifest manifest;
	struct backup_fetch fetch;
};

static int read_manifest(struct pack_return *back, struct backup_vault *vault, struct error *err);
static const struct backup_file *find_file(
	const struct pack_return *back, const struct pack_record *record);
static bool makes_whole(const struct pack_return *back, const struct pack_record *record,
	const struct backup_file *file);
static void place_of(
	const struct pack_return *back, const struct pack_id *pack, char out[PATH_BYTES]);
static int put_back(struct pack_return *back, const struct pack_id *pack,
	const struct backup_file *file, struct error *err);
static int add_rest(const struct pack_return *back, const char *from, const char *to,
	uint64_t offset, struct error *err);
static int copy_rest(const struct pack_return *back, int from, int to, uint64_t offset,
	const char *path, struct error *err);

struct pack_return *pack_return_open(const char *folder, const struct file_ops *files,
	struct backup_vault *vault, struct error *err)
{
	struct pack_return *back = memory_new(sizeof(*back));
	char path[PATH_BYTES];
	back->folder = folder;
	back->files = files;
	back->fetch = (struct backup_fetch){.vault = vault, .files = files};
	snprintf(path, sizeof(path), "%s/catalog.db", folder);
	back->db = db_open(path, DB_LOOK, err);
	if (back->db != NULL)
		db_keep_log(back->db, true);
	if (back->db != NULL && read_manifest(back, vault, err) == 0)
		return back;
	pack_return_close(back);
	return NULL;
}

void pack_return_close(struct pack_return *back)
{
	if (back == NULL)
		return;
	db_close(back->db);
	backup_manifest_release(&back->manifest);
	backup_fetch_release(&back->fetch);
	free(back);
}

int pack_return_has(struct pack_return *back, int64_t number, bool *out_has, struct error *err)
{
	struct pack_record record;
	const int found = pack_row_find(back->db, number, &record, err);
	*out_has = found == 1 && find_file(back, &record) != NULL;
	return found < 0 ? -1 : 0;
}

int pack_return_run(struct pack_return *back, int64_t number, struct error *err)
{
	struct pack_record record;
	const int found = pack_row_find(back->db, number, &record, err);
	const struct backup_file *file = found == 1 ? find_file(back, &record) : NULL;
	if (found < 0)
		return -1;
	return file == NULL ? error_set(err, ERROR_NOT_FOUND, "neither the backup nor the data folder has all of this pack")
			    : put_back(back, pack_record_file(&record), file, err);
}

static int read_manifest(struct pack_return *back, struct backup_vault *vault, struct error *err)
{
	struct backup_moments moments = {.count = 0};
	int result = backup_moments_list(vault->target, &moments, err);
	if (result == 0 && moments.count == 0)
		result = error_set(err, ERROR_NOT_FOUND, "The backup has no moment.");
	if (result == 0)
		result = backup_vault_manifest(
			vault, &moments.items[moments.count - 1], &back->manifest, err);
	backup_moments_release(&moments);
	return result;
}

/* NULL: its begin is not there, or its end is neither there nor in its place. */
static const struct backup_file *find_file(
	const struct pack_return *back, const struct pack_record *record)
{
	char key[BACKUP_KEY_BYTES];
	backup_key_of_pack(pack_record_file(record), key);
	for (size_t i = 0; i < back->manifest.count; i++) {
		const struct backup_file *file = &back->manifest.files[i];
		if (strcmp(file->key, key) == 0)
			return makes_whole(back, record, file) ? file : NULL;
	}
	return NULL;
}

static bool makes_whole(const struct pack_return *back, const struct pack_record *record,
	const struct backup_file *file)
{
	char path[PATH_BYTES];
	struct stat facts;
	const uint64_t covered = backup_file_covered(file);
	place_of(back, pack_record_file(record), path);
	return covered >= record->length ||
		(covered > 0 && stat(path, &facts) == 0 &&
			(uint64_t)facts.st_size >= record->length);
}

static void place_of(
	const struct pack_return *back, const struct pack_id *pack, char out[PATH_BYTES])
{
	char name[PACK_NAME_BYTES];
	pack_format_name(pack, PACK_FILE_PACK, name);
	snprintf(out, PATH_BYTES, "%s/packs/%.2s/%s", back->folder, name, name);
}

static int put_back(struct pack_return *back, const struct pack_id *pack,
	const struct backup_file *file, struct error *err)
{
	char path[PATH_BYTES];
	char fetched[PATH_BYTES + 16];
	place_of(back, pack, path);
	snprintf(fetched, sizeof(fetched), "%s.tmp-returned", path);
	if (backup_fetch_file(&back->fetch, file, fetched, err) != 0 ||
		(file_exists(path) &&
			add_rest(back, path, fetched, backup_file_covered(file), err) != 0))
		return -1;
	if (file_exists(path) && set_aside_take(back->files, back->folder, path, err) != 0)
		return -1;
	if (back->files->rename(back->files, fetched, path) != 0)
		return error_set_errno(err, "%s cannot be renamed", fetched);
	return file_sync_name(back->files, path, err);
}

/* A pack that has grown since: what the backup does not have comes from the file in its place. */
static int add_rest(const struct pack_return *back, const char *from, const char *to,
	uint64_t offset, struct error *err)
{
	const struct file_ops *files = back->files;
	int result = -1;
	const int source = files->open(files, from, O_RDONLY | O_CLOEXEC, 0);
	const int target = files->open(files, to, O_WRONLY | O_CLOEXEC, 0);
	if (source < 0 || target < 0)
		error_set_errno(err, "%s cannot be opened", source < 0 ? from : to);
	else if (copy_rest(back, source, target, offset, to, err) == 0)
		result = file_sync(files, target, to, err);
	if (source >= 0)
		close(source);
	if (target >= 0)
		close(target);
	return result;
}

static int copy_rest(const struct pack_return *back, int from, int to, uint64_t offset,
	const char *path, struct error *err)
{
	uint8_t *const block = memory_new(REST_BYTES);
	ssize_t got;
	int result = 0;
	while (result == 0 && (got = pread(from, block, REST_BYTES, (off_t)offset)) > 0) {
		result = file_write_at(back->files, to, span_of(block, (size_t)got), (off_t)offset,
			path, err);
		offset += (uint64_t)got;
	}
	if (result == 0 && got < 0)
		result = error_set_errno(err, "the rest of %s cannot be read", path);
	free(block);
	return result;
}
