/* Brings the forms of a step from files in the state folder to objects on the server: makes the
 * delta, and uploads delta and anchor, each object once. */
#ifndef CLIENT_PUBLISH_PUBLISH_FORMS_H
#define CLIENT_PUBLISH_PUBLISH_FORMS_H

#include "client/local/folder_files.h"
#include "client/publish/publisher.h"

struct publish_form {
	bool wanted;
	const char *format; /* "full", "trl-gap", ... */
	struct folder_files files;
	/* one per file; keys and versions are owned here, names are borrowed from `files` */
	struct step_object *objects;
	/* one per file: the object is an earlier step's and is not sent again */
	bool *referred;
	uint64_t bytes;
};

struct publish_forms {
	struct publish_form form[STEP_FORMS_MAX]; /* by enum step_form_kind */
};

/* Makes the delta of the pending step, unless an earlier call did, and decides whether there is an
 * anchor. Afterwards at least one form is wanted. wrong_base when the baseline on disk is
 * damaged. */
int publish_forms_make(struct publish_forms *forms, struct publisher *publisher,
	const struct snapshot *snapshot, struct error *err);
/* The same for a pending step whose delta is there and that needs no anchor. */
int publish_forms_take_delta(
	struct publish_forms *forms, struct publisher *publisher, struct error *err);
/* Makes the delta from the committed step, which must exist, to `next`. */
struct publish_diff {
	const struct checkpoint *next;
	const char *out; /* must not exist */
	/* the caller's arrays, in schema order; NULL: not wanted */
	struct digest128 *base_digests;
	struct digest128 *next_digests;
};
/* Compares with the trainer's own checkpoint if that proves to be the committed step, and otherwise
 * with the base in the state folder. Sets outcome.stats and used_copy. wrong_base when the baseline
 * is damaged, unsupported when the format cannot represent these tensors exactly. */
int publish_forms_diff(
	struct publisher *publisher, const struct publish_diff *diff, struct error *err);
/* Makes every object this step's own, so that publish_forms_send uploads it. Called when objects of
 * an earlier step turned out to be gone. */
void publish_forms_own(struct publish_forms *forms, const struct publisher *publisher);
void publish_forms_release(struct publish_forms *forms); /* a zeroed one is fine */

/* Uploads what has not been uploaded yet. */
int publish_forms_send(
	const struct publish_forms *forms, struct publisher *publisher, struct error *err);

#endif
