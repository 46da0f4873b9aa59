/* What `sync` has to do: the names below a folder and below a prefix, side by side. Both lists are
 * sorted by name, byte order. */
#ifndef CLIENT_SYNC_SYNC_PLAN_H
#define CLIENT_SYNC_SYNC_PLAN_H

#include "chunker/chunk.h"
#include "client/local/folder_files.h"
#include "client/remote/remote_object.h"

/* What downloads are called until they are whole; such names are no part of a folder. */
#define SYNC_PART_SUFFIX ".deltabucket-part"
enum { SYNC_ENTRIES_MAX = 1000000, SYNC_NAME_MAX_BYTES = 4096 };

struct sync_entry {
	char *name; /* below the folder, or behind the prefix */
	uint64_t size;
	bool has_hash; /* objects of a listing by the Hub half */
	struct chunk_id hash;
};
struct sync_list {
	struct sync_entry *entries;
	size_t count;
};
void sync_list_release(struct sync_list *list);

/* The files of a folder that is there. */
int sync_list_folder(const char *folder, struct sync_list *out, struct error *err);
/* The objects whose keys begin with `prefix` (which ends in '/', or is empty). Keys that end in '/'
 * are folders that some console made, and left out. */
int sync_list_prefix(struct remote *remote, struct span bucket, struct span prefix,
	struct sync_list *out, struct error *err);
/* Adds the hashes that the Hub half's listing has; it leaves out keys that it does not take as
 * paths, and those without a file hash yet. Fails with another kind than upstream and busy where
 * the server or the caller's rights do not allow it. */
int sync_list_add_hashes(struct remote *remote, struct span bucket, struct span prefix,
	struct sync_list *list, struct error *err);

struct sync_item {
	const char *name;            /* lies in one of the lists */
	uint64_t size;               /* at the source */
	const struct chunk_id *hash; /* of the object, where the listing has it; NULL: not */
	enum { SYNC_NEW, SYNC_MAYBE, SYNC_DIFFERS, SYNC_SAME, SYNC_GONE } state;
};
struct sync_plan {
	struct sync_item *items; /* sorted by name */
	size_t count;
};
/* What the source has, and what it lacks: only at the source (new), on both sides with one size
 * (maybe: their digests will tell) or with two (differs), only at the target (gone). Names lie in
 * the lists, which must outlive the plan. */
void sync_plan_make(
	const struct sync_list *source, const struct sync_list *target, struct sync_plan *out);
void sync_plan_release(struct sync_plan *plan);
/* A key as a path below a folder of ours: relative, no segment empty, "." or "..". */
bool sync_plan_is_path(const char *name);

#endif
