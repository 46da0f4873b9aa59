/* The forms of a step, from files in the state folder to objects on the server: the delta is made
 * and both are uploaded, each object once. */
#ifndef CLIENT_PUBLISH_PUBLISH_FORMS_H
#define CLIENT_PUBLISH_PUBLISH_FORMS_H

#include "client/local/folder_files.h"
#include "client/publish/publisher.h"

struct publish_form {
	bool wanted;
	const char *format; /* "full", "trl-gap", ... */
	struct folder_files files;
	/* one per file; keys and versions lie here, names in `files` */
	struct step_object *objects;
	/* per object: it is one of an earlier step's, and not sent again */
	bool *referred;
	uint64_t bytes;
};

struct publish_forms {
	struct publish_form form[STEP_FORMS_MAX]; /* by enum step_form_kind */
};

/* Makes the delta of the pending step (unless an earlier call did) and decides on the anchor.
 * wrong_base when the baseline on disk is damaged. */
int publish_forms_make(struct publish_forms *forms, struct publisher *publisher,
	const struct snapshot *snapshot, struct error *err);
/* From now on every object is this step's own, and sent: those of an earlier step turned out to be
 * gone. */
void publish_forms_own(struct publish_forms *forms, const struct publisher *publisher);
void publish_forms_release(struct publish_forms *forms); /* a zeroed one is fine */

/* Uploads what has not been uploaded yet. */
int publish_forms_send(
	const struct publish_forms *forms, struct publisher *publisher, struct error *err);

#endif
