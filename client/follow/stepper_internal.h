/* What the two files of the stepper share: stepper.c has the questions to the server,
 * stepper_move.c makes the steps. */
#ifndef CLIENT_FOLLOW_STEPPER_INTERNAL_H
#define CLIENT_FOLLOW_STEPPER_INTERNAL_H

#include "client/follow/stepper.h"

/* Opens the folder, or that of the weights in memory. */
int stepper_open_folder(struct stepper *stepper, struct error *err);
/* The part of each step that is followed; "": all of it. */
const char *stepper_part(const struct stepper *stepper);
/* Returns `result`, and keeps of a question's failure whether it may pass. */
int stepper_ask(struct stepper *stepper, int result);

/* Makes the step that the path leads to, which has a link at least, and swaps to it. */
int stepper_move(struct stepper *stepper, struct stepper_round *round,
	const struct path_message *path, struct error *err);
/* Throws away the weights in memory. Downloads stay. */
int stepper_drop_memory(struct stepper *stepper, struct error *err);
/* Forgets the deltas of the held step, and removes them: the next step comes, or nobody will ask
 * for them any more. */
void stepper_drop_deltas(struct stepper *stepper);

#endif
