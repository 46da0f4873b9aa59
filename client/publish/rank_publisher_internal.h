/* What rank_publisher.c and rank_part.c share. */
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
	char *shared; /* folder of all ranks' states */
	struct publish_state state;
	struct arena *arena; /* of what the server said of the head */
	bool enters;         /* rank 0 takes the run over, and has not done so yet */
	bool has_head;
	struct step_message head;
	bool goes_whole;             /* the head is no base for our shards */
	struct rank_share share;     /* of the pending step */
	struct folder_files sending; /* the objects of the one form, beneath `sending_root` */
	struct step_object *objects;
	enum step_form_kind kind;
	struct publish_outcome outcome;
};

/* rank_publisher.c: whether the step's files are these. */
bool rank_publisher_has_files(
	const struct step_message *step, const struct step_file *files, size_t count);

/* rank_part.c, in the order in which they are called. */
int rank_part_describe(struct rank_publisher *self, struct error *err);
int rank_part_upload(struct rank_publisher *self, struct error *err);
int rank_part_put(struct rank_publisher *self, bool *out_published, struct error *err);
/* Until the other ranks have put theirs, too. */
int rank_part_wait(struct rank_publisher *self, struct error *err);
/* What was published under this number must be what this rank put. */
int rank_part_check(struct rank_publisher *self, struct error *err);

#endif
