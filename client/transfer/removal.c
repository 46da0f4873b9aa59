/* Keys are collected into batches of up to REMOTE_HUB_LINES_MAX. If the Hub face refuses a batch as
 * a whole, its keys are removed one by one. A single key needs no batch, except in a dry run, which
 * only a batch can ask for. */
#include "client/transfer/removal.h"

#include <stdlib.h>

#include "base/memory.h"
#include "client/remote/remote_hub.h"
#include "client/remote/remote_object.h"
#include "client/work/refusals.h"
#include "client/transfer/session.h"

struct batch {
	const struct removal *removal;
	const struct span *keys;
	struct hub_change *changes;
	size_t *numbers; /* for each change: the index of its key */
	size_t count;
};

static int add(struct batch *batch, size_t number, struct error *err);
static int send_batch(struct batch *batch, struct error *err);
static int report(
	const struct removal *removal, size_t number, const struct error *why, struct error *err);
static int remove_plain(
	const struct removal *removal, const struct span *keys, size_t number, struct error *err);

int removal_run(
	const struct removal *removal, const struct span *keys, size_t count, struct error *err)
{
	ASSERT(removal->removed != NULL && removal->refused != NULL);
	const size_t room = count < REMOTE_HUB_LINES_MAX ? count : REMOTE_HUB_LINES_MAX;
	struct batch batch = {.removal = removal,
		.keys = keys,
		.changes = memory_new_array(room + 1, sizeof(*batch.changes)),
		.numbers = memory_new_array(room + 1, sizeof(*batch.numbers))};
	const bool is_alone = count == 1 && !removal->is_dry;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++)
		result = remote_hub_takes(keys[i]) && !is_alone
			? add(&batch, i, err)
			: remove_plain(removal, keys, i, err);
	if (result == 0)
		result = send_batch(&batch, err);
	free(batch.numbers);
	free(batch.changes);
	return result;
}

static int add(struct batch *batch, size_t number, struct error *err)
{
	if (batch->count == REMOTE_HUB_LINES_MAX && send_batch(batch, err) != 0)
		return -1;
	batch->numbers[batch->count] = number;
	batch->changes[batch->count++] = (struct hub_change){.key = batch->keys[number],
		.kind = batch->removal->is_dry ? HUB_CHANGE_JUDGE : HUB_CHANGE_DELETE};
	return 0;
}

/* Sends the batch and empties it. Keys that are removed one by one each have their own reason for a
 * failure. */
static int send_batch(struct batch *batch, struct error *err)
{
	const struct removal *removal = batch->removal;
	struct error failure = {0};
	if (batch->count == 0)
		return 0;
	const bool is_answered = remote_hub_change(removal->remote, removal->bucket, batch->changes,
					 batch->count, &failure) == 0;
	if (!is_answered && !session_wants_plain(&failure)) {
		*err = failure;
		return -1;
	}
	int result = 0;
	for (size_t i = 0; i < batch->count && result == 0; i++) {
		if (is_answered)
			result =
				report(removal, batch->numbers[i], &batch->changes[i].failure, err);
		else if (removal->is_dry && failure.kind == ERROR_DENIED)
			result = report(removal, batch->numbers[i], &failure, err);
		else
			result = remove_plain(removal, batch->keys, batch->numbers[i], err);
	}
	batch->count = 0;
	return result;
}

/* Reports the result for one key. -1 when the failure also stops the rest. */
static int report(
	const struct removal *removal, size_t number, const struct error *why, struct error *err)
{
	if (why->kind == ERROR_NONE) {
		removal->removed(removal->owner, number);
		return 0;
	}
	if (!refusals_is_of_one(why)) {
		*err = *why;
		return -1;
	}
	removal->refused(removal->owner, number, why);
	return 0;
}

/* In a dry run nothing is sent: S3 cannot be asked, so the key counts as removable. */
static int remove_plain(
	const struct removal *removal, const struct span *keys, size_t number, struct error *err)
{
	struct error why = {0};
	if (!removal->is_dry) {
		char *target = remote_object_target(removal->bucket, keys[number]);
		remote_object_delete(removal->remote, target, &why);
		free(target);
	}
	return report(removal, number, &why, err);
}
