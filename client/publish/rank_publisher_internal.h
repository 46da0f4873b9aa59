/* State and functions that rank_publisher.c, rank_copy.c and rank_part.c share. */
#ifndef CLIENT_PUBLISH_RANK_PUBLISHER_INTERNAL_H
#define CLIENT_PUBLISH_RANK_PUBLISHER_INTERNAL_H

#include "client/local/folder_files.h"
#include "client/publish/publish_state.h"
#include "client/publish/rank_publisher.h"
#include "client/publish/rank_share.h"

struct rank_publisher {
	struct session *session;
	const struct publish_order *order;
	const struct rank_order *rank;
	struct run_name run;
	struct remote *remote;
	char *shared; /* the folder that holds the state folders of all ranks */
	struct publish_state state;
	struct arena *arena; /* holds `head` */
	bool enters;         /* rank 0 takes the run over, and has not done so yet */
	bool has_head;
	struct step_message head;
	bool goes_whole;           /* the head is not a base for our shards */
	struct rank_memory memory; /* when the order has tensors in memory; else zero */
	struct rank_share share;   /* of the pending step */
	bool *same; /* in memory: the tensors that are as in the step before; NULL: not known */
	struct folder_files sending; /* the files of the one form that this rank sends */
	struct step_object *objects; /* one for each of these; NULL until described */
	enum step_form_kind kind;
	struct publish_outcome outcome;
	int64_t began_ms; /* monotonic, when rank_publisher_run began */
};

/* In rank_publisher.c: whether the step has all these files among its own. */
bool rank_publisher_has_files(
	const struct step_message *step, const struct step_file *files, size_t count);

/* In rank_copy.c. The pending step's folder has a copy of the share: of one on disk from the
 * beginning, of one in memory only when it is sent whole or no delta leads to it. */
/* Takes the share as step `step`, which becomes the pending one. */
int rank_copy_take(struct rank_publisher *self, uint64_t step, struct error *err);
/* Sees to it that the pending step has its copy. */
int rank_copy_complete(struct rank_publisher *self, struct error *err);
/* Opens a copy and hashes it, unless the word to stop comes. As rank_share_open; so is *out. */
int rank_copy_open(const struct rank_publisher *self, const char *folder, struct rank_share *out,
	struct error *err);
/* Copies the files that this rank publishes now from the whole checkpoint `whole` to `to`. */
int rank_copy_ours(
	const struct rank_publisher *self, const char *whole, const char *to, struct error *err);
/* After the commit of a delta from memory: changes the copy of the step before into that of the
 * committed one. A failure is noted: the next call then fetches the step. */
void rank_copy_keep(struct rank_publisher *self);

/* In rank_part.c, in the order in which they are called. A step must be pending. */
/* Fills in `objects`. */
int rank_part_describe(struct rank_publisher *self, struct error *err);
int rank_part_upload(struct rank_publisher *self, struct error *err);
/* *out_published: this was the last part, and the step is published. */
int rank_part_put(struct rank_publisher *self, bool *out_published, struct error *err);
/* Waits until the other ranks have put their parts. stale_epoch when another writer has opened the
 * run; not_ready when the parts do not come in time. */
int rank_part_wait(struct rank_publisher *self, struct error *err);
/* step_differs unless the published step has the files that this rank put. */
int rank_part_check(struct rank_publisher *self, struct error *err);

#endif
