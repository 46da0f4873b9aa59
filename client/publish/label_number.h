/* The number that a step's label ends in, as in "global_step_40": it tells which of a trainer's
 * checkpoints the step was made of. */
#ifndef CLIENT_PUBLISH_LABEL_NUMBER_H
#define CLIENT_PUBLISH_LABEL_NUMBER_H

#include "client/remote/remote_run.h"

struct label_number {
	bool is_known; /* a step has such a label */
	uint64_t value;
};

/* False when the label does not end in a number of up to 18 digits. */
bool label_number_read(struct span label, uint64_t *out);
/* The number of the newest step that has one, among the newest 256 steps of the run up to `head`.
 * *out stays as it is when none has. */
int label_number_find(struct remote *remote, const struct run_name *run,
	const struct step_message *head, struct label_number *out, struct error *err);
/* The same for callers that do not have the head's message. */
int label_number_list(struct remote *remote, const struct run_name *run, uint64_t head,
	struct label_number *out, struct error *err);

#endif
