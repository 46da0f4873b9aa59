/* The document <Delete>: keys and versions, with the conditions under which each is deleted. Pure;
 * any thread. */
#ifndef API_S3_OBJECT_DELETE_LIST_H
#define API_S3_OBJECT_DELETE_LIST_H

#include "storage/objects/object_delete.h"
#include "storage/versions/object.h"

struct delete_list {
	struct delete_entry {
		/* item.error is set when the entry cannot be done: a malformed version, or a key
		 * that is too long */
		struct object_delete_item item;
		struct span version; /* as sent; empty: none */
	} * entries;
	size_t count;
	bool is_quiet;
};
/* All texts lie in the arena. malformed_xml, also for no entries, more than OBJECT_DELETE_MAX, or
 * an entry without a key; no_memory. */
int delete_list_read(
	struct span xml, struct arena *arena, struct delete_list *out, struct error *err);

#endif
