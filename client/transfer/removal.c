#include "client/transfer/removal.h"

#include <stdlib.h>

#include "base/memory.h"
#include "client/remote/remote_hub.h"
#include "client/remote/remote_object.h"
#include "client/terminal/refusals.h"
#include "client/transfer/session.h"

struct lot { /* of one batch */
	const struct removal *removal;
	const struct span *keys;
	struct hub_change *changes;
	size_t *numbers; /* of the changes, among the keys */
	size_t count;
};

static int add(struct lot *lot, size_t number, struct error *err);
static int send(struct lot *lot, struct error *err);
static int tell(
	const struct removal *removal, size_t number, const struct error *why, struct error *err);
static int remove_plain(
	const struct removal *removal, const struct span *keys, size_t number, struct error *err);

int removal_run(
	const struct removal *removal, const struct span *keys, size_t count, struct error *err)
{
	const size_t room = count < REMOTE_HUB_LINES_MAX ? count : REMOTE_HUB_LINES_MAX;
	struct lot lot = {.removal = removal,
		.keys = keys,
		.changes = memory_new_array(room + 1, sizeof *lot.changes),
		.numbers = memory_new_array(room + 1, sizeof *lot.numbers)};
	const bool alone = count == 1 && !removal->is_dry;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++)
		result = remote_hub_takes(keys[i]) && !alone ? add(&lot, i, err)
							     : remove_plain(removal, keys, i, err);
	if (result == 0)
		result = send(&lot, err);
	free(lot.numbers);
	free(lot.changes);
	return result;
}

static int add(struct lot *lot, size_t number, struct error *err)
{
	if (lot->count == REMOTE_HUB_LINES_MAX && send(lot, err) != 0)
		return -1;
	lot->numbers[lot->count] = number;
	lot->changes[lot->count++] = (struct hub_change){.key = lot->keys[number],
		.kind = lot->removal->is_dry ? HUB_CHANGE_JUDGE : HUB_CHANGE_DELETE};
	return 0;
}

/* A batch that is refused as a whole is tried again key by key, where each failure says why. */
static int send(struct lot *lot, struct error *err)
{
	const struct removal *removal = lot->removal;
	struct error failure = {0};
	if (lot->count == 0)
		return 0;
	bool is_told = remote_hub_change(removal->remote, removal->bucket, lot->changes, lot->count,
			       &failure) == 0;
	if (!is_told && !session_wants_plain(&failure)) {
		*err = failure;
		return -1;
	}
	int result = 0;
	for (size_t i = 0; i < lot->count && result == 0; i++) {
		if (is_told)
			result = tell(removal, lot->numbers[i], &lot->changes[i].failure, err);
		else if (removal->is_dry && failure.kind == ERROR_DENIED)
			result = tell(removal, lot->numbers[i], &failure, err);
		else
			result = remove_plain(removal, lot->keys, lot->numbers[i], err);
	}
	lot->count = 0;
	return result;
}

static int tell(
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

/* What cannot be asked about is taken for removable. */
static int remove_plain(
	const struct removal *removal, const struct span *keys, size_t number, struct error *err)
{
	struct error why = {0};
	if (!removal->is_dry) {
		char *target = remote_object_target(removal->bucket, keys[number]);
		remote_object_delete(removal->remote, target, &why);
		free(target);
	}
	return tell(removal, number, &why, err);
}
