/* Counts what readers are sent of steps, and what they would have been sent of whole
 * checkpoints. */
#ifndef API_STEPS_FORM_SENT_H
#define API_STEPS_FORM_SENT_H

#include "api/exchange/exchange.h"
#include "storage/runs/run.h"

/* For `sent` of an exchange (exchange.h) whose reply is an object of a form. A whole checkpoint, or
 * a part of one, counts as itself; a part of a delta or fold as the same part of the checkpoint of
 * the step that it leads to. `from` is the step that it leads from. The metrics follow a moment
 * later, because the catalog is asked on a helper. */
struct form_sent {
	struct run_ref run;
	bool is_anchor;
	uint64_t from;
	uint64_t step;
};
void form_sent_count(struct exchange *exchange, const struct form_sent *form);

#endif
