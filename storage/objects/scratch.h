/* Folders under DIR/scratch for background work that needs local files, and the way of objects into
 * such files and back. What lies there is of no worth after a restart: store_open removes all of
 * it. Every call here waits for the disk: never on a reactor or the committer.
 *
 * A version that scratch_store_hidden made is held by a row of `scratch_versions` until it is
 * released. Whoever puts it to use names it (a step's object, a source of a derived version) and
 * calls scratch_row_release in the same change; what a crash leaves held is removed after the next
 * start. Any thread; a struct scratch is one thread's at a time. */
#ifndef STORAGE_OBJECTS_SCRATCH_H
#define STORAGE_OBJECTS_SCRATCH_H

#include "storage/versions/object.h"

struct scratch;
/* A new, empty folder of its own. no_space: disk_floor.h. */
struct scratch *scratch_open(struct store *store, struct error *err);
const char *scratch_path(const struct scratch *scratch);
/* Takes the paths of scratch folders out of the text, all but what lies in them: for texts that
 * clients get to see. */
void scratch_hide_paths(struct store *store, struct error *err);
/* Removes the folder with all that lies in it. NULL is fine. */
void scratch_close(struct scratch *scratch);

/* The bytes of a version (by row), whole, into a new file at `path`, whose folder must exist;
 * missing folders below it are made. Proven by the version's digest where it has one (corrupt), and
 * by the checksums of its records anyway. Not synced. no_key when the version is gone. */
int scratch_fetch(struct store *store, int64_t version, const char *path, struct error *err);
/* A local file as a new version on top of its key, as any PUT. Durable when this returns. ETag: the
 * digest in hex and "-d". *out_version: its row. */
int scratch_store(struct store *store, const char *path, struct bucket_ref bucket, struct span key,
	int64_t *out_version, struct error *err);
/* The same hidden (state 0, held as told above), in the bucket with this id, whatever its name is
 * by now. */
int scratch_store_hidden(struct store *store, const char *path, int64_t bucket, struct span key,
	int64_t *out_version, struct error *err);
/* Lets go of a held version that is not needed: it is removed unless something names it. */
int scratch_release(struct store *store, int64_t version, struct error *err);

/* For store_open: removes the folders that an earlier process left, and notes which versions it
 * held. */
int scratch_recover(struct store *store, struct error *err);
/* Lets go of those; once, when deleting is allowed. */
int scratch_release_left(struct store *store, struct error *err);

#endif
