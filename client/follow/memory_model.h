/* Weights that a follower holds in memory: the files of one checkpoint in a private folder of
 * /dev/shm, with the shards mapped for writing. Deltas change them in place, so that a step costs
 * no second copy. Where /dev/shm is missing or too small, a folder for temporary files takes its
 * place. One thread at a time. */
#ifndef CLIENT_FOLLOW_MEMORY_MODEL_H
#define CLIENT_FOLLOW_MEMORY_MODEL_H

#include "client/transfer/live_checkpoint.h"
#include "client/work/output.h"

/* Those of memory_places.h as a list that ends with NULL: the caller frees the array. */
const char **memory_model_parents(void);

struct memory_model;

/* Makes the private folder in the first of `parents`, a list that ends with NULL, that can take
 * one. What dead processes of this user left there is removed. */
struct memory_model *memory_model_new(
	const struct file_ops *files, const char *const *parents, struct error *err);
/* Removes the folder with all that is in it. Who holds the weights keeps them. NULL is fine. */
void memory_model_free(struct memory_model *model);

/* For the follower's files: nothing else is in it. Valid until the model moves. */
const char *memory_model_folder(const struct memory_model *model);
/* Sees to it that the folder has room for `bytes` more. 1 when another parent has it: then the
 * folder is another one, the old one is gone with all that was in it, and that is noted. no_space
 * when no parent has it. Nothing may be mapped. */
int memory_model_make_room(
	struct memory_model *model, uint64_t bytes, const struct output *output, struct error *err);

/* Maps the checkpoint in `folder`. Only while nothing is mapped. */
int memory_model_map(struct memory_model *model, const char *folder, struct error *err);
void memory_model_unmap(struct memory_model *model);
/* NULL: nothing is mapped. Borrowed until unmapped, unless the caller holds it. */
struct live_checkpoint *memory_model_live(const struct memory_model *model);

#endif
