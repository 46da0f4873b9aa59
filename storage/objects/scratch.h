/* Folders under DIR/scratch for background work that needs local files, and ways to move objects
 * into files and back. After a restart the folders are worthless: store_open removes them all.
 * Every function here waits for the disk, so none may run on a reactor or the committer.
 *
 * A row of `scratch_versions` keeps a version that scratch_store_hidden made. Work that puts the
 * version to use names it (a step's object, a source of a derived version) and calls
 * scratch_row_release in the same change. Versions that a crash leaves are removed after the next
 * start. Any thread; a struct scratch belongs to one thread at a time. */
#ifndef STORAGE_OBJECTS_SCRATCH_H
#define STORAGE_OBJECTS_SCRATCH_H

#include "storage/versions/object.h"

struct scratch;
/* Makes a new, empty folder. no_space: disk_floor.h. */
struct scratch *scratch_open(struct store *store, struct error *err);
const char *scratch_path(const struct scratch *scratch);
/* Cuts the paths of scratch folders out of the error's text, for texts that clients see. Names
 * below them stay. */
void scratch_hide_paths(struct store *store, struct error *err);
/* Removes the folder with its files. NULL is fine. */
void scratch_close(struct scratch *scratch);

/* Writes all bytes of a version (by row) into a new file at `path`, and makes folders that are
 * missing above it. The version's digest proves them where it has one (corrupt), and the checksums
 * of its records in any case. Not synced. no_key when the version is gone. */
int scratch_fetch(struct store *store, int64_t version, const char *path, struct error *err);
/* Stores a local file as a new version on top of its key, like a PUT. Durable when this returns.
 * Its ETag is the digest in hex and "-d". *out_version is its row. */
int scratch_store(struct store *store, const char *path, struct bucket_ref bucket, struct span key,
	int64_t *out_version, struct error *err);
/* The same as a hidden version, which `scratch_versions` keeps, in the bucket with this id,
 * whatever its name is by now. */
int scratch_store_hidden(struct store *store, const char *path, int64_t bucket, struct span key,
	int64_t *out_version, struct error *err);
/* Releases a version that scratch_store_hidden made: it is removed unless something names it. */
int scratch_release(struct store *store, int64_t version, struct error *err);

/* For store_open: removes the folders of an earlier process and notes which versions it left. */
int scratch_recover(struct store *store, struct error *err);
/* Releases those versions; once, when deleting is allowed. */
int scratch_release_left(struct store *store, struct error *err);

#endif
