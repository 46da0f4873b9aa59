/* The plan of a `sync`: the names below a folder and those below a prefix, side by side. Both lists
 * are sorted by name, in byte order. */
#ifndef CLIENT_SYNC_SYNC_PLAN_H
#define CLIENT_SYNC_SYNC_PLAN_H

#include "chunker/chunk.h"
#include "client/local/folder_files.h"
#include "client/remote/remote_object.h"

/* The suffix of downloads that are not complete. Files with such names do not count as part of a
 * folder. */
#define SYNC_PART_SUFFIX ".deltabucket-part"
enum { SYNC_ENTRIES_MAX = 1000000, SYNC_NAME_MAX_BYTES = 4096 };

struct sync_entry {
	char *name; /* relative to the folder, or to the prefix */
	uint64_t size;
	bool has_hash; /* for objects, after sync_list_add_hashes */
	struct chunk_id hash;
};
struct sync_list {
	struct sync_entry *entries;
	size_t count;
};
void sync_list_release(struct sync_list *list);

/* Lists the files of a folder, which must exist. With `follows_links` those that links lead to
 * count too, for a folder that is only read (folder_files_read_linked). */
int sync_list_folder(
	const char *folder, bool follows_links, struct sync_list *out, struct error *err);
/* Lists the objects whose keys begin with `prefix`, which ends in '/' or is empty. Keys that end in
 * '/' are left out: consoles make them as folders. */
int sync_list_prefix(struct remote *remote, struct span bucket, struct span prefix,
	struct sync_list *out, struct error *err);
/* Adds the hashes from the Hub face's listing. That listing lacks keys that are not paths for the
 * Hub, and files that have no hash yet. When the server or the caller's rights do not allow the
 * listing, it fails with a kind other than upstream and busy. */
int sync_list_add_hashes(struct remote *remote, struct span bucket, struct span prefix,
	struct sync_list *list, struct error *err);

struct sync_item {
	const char *name;            /* borrowed from one of the lists */
	uint64_t size;               /* at the source; of SYNC_GONE: at the target */
	const struct chunk_id *hash; /* of the object; NULL when the listing lacks it */
	enum { SYNC_NEW, SYNC_MAYBE, SYNC_DIFFERS, SYNC_SAME, SYNC_GONE } state;
};
struct sync_plan {
	struct sync_item *items; /* sorted by name */
	size_t count;
};
/* Compares the lists. A name is only at the source (new), on both sides with the same size (maybe:
 * the caller compares the content) or with different sizes (differs), or only at the target (gone).
 * The plan borrows the names from the lists, which must outlive it. */
void sync_plan_make(
	const struct sync_list *source, const struct sync_list *target, struct sync_plan *out);
void sync_plan_release(struct sync_plan *plan);
/* Whether a key can be a path below a local folder: relative, no segment that is empty, ".", ".."
 * or over 255 bytes, no slash at the end, and not the name of an incomplete download. */
bool sync_plan_is_path(const char *name);

#endif
