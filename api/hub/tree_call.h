/* The common part of requests that show files: it looks into the tree, waits for hashes that were
 * not needed before, and looks again. */
#ifndef API_HUB_TREE_CALL_H
#define API_HUB_TREE_CALL_H

#include "api/exchange/exchange.h"
#include "base/format/json_node.h"
#include "storage/files/tree.h"

struct file_hash_wait;
struct tree_call { /* first in the exchange's state */
	int (*look)(struct exchange *exchange, struct tree *out, struct error *err);
	enum next (*reply)(struct exchange *exchange, const struct tree *tree);
	/* private */
	struct file_hash_wait *wait;
	unsigned looks;
	bool leaves_out_unhashed; /* some files are damaged and will never have a hash */
};
enum next tree_call_run(struct exchange *exchange, struct tree_call *call);
enum next tree_call_resume(struct exchange *exchange, struct tree_call *call);
void tree_call_release(struct tree_call *call);

/* Prints the elements of an array: all directories, and all files whose hash is known. */
void tree_call_print(struct json_writer *json, const struct tree *tree);

#endif
