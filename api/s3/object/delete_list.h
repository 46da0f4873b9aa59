/* The document <Delete>: which keys and versions, under which conditions. Pure. */
#ifndef API_S3_OBJECT_DELETE_LIST_H
#define API_S3_OBJECT_DELETE_LIST_H

#include "storage/objects/object_delete.h"
#include "storage/versions/object.h"

struct delete_list {
	struct delete_entry {
		/* item.error is set for what cannot be done: a bad version, a key that is too
		 * long */
		struct object_delete_item item;
		struct span version; /* as sent; empty: none */
	} * entries;
	size_t count;
	bool is_quiet;
};
/* All texts lie in the arena. malformed_xml, also for no entry, over OBJECT_DELETE_MAX of them, or
 * one without a key. */
int delete_list_read(
	struct span xml, struct arena *arena, struct delete_list *out, struct error *err);

#endif
