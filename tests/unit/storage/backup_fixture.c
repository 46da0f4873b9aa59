#include "tests/unit/storage/backup_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "storage/open/store_open.h"
#include "tests/unit/unit.h"

enum { HOUR_MS = 3600 * 1000, ARENA = 1 << 26 };

static char *seeded;

static int take_hold(
	void *owner, const char *name, uint8_t out_id[BACKUP_HOLD_ID_BYTES], struct error *err)
{
	struct backup_fixture *fixture = owner;
	struct backup_hold hold;
	const int result =
		backup_holds_take(store_backup_holds(fixture->store.store), name, &hold, err);
	memcpy(out_id, hold.id, BACKUP_HOLD_ID_BYTES);
	return result;
}

static int end_hold(void *owner, const uint8_t id[BACKUP_HOLD_ID_BYTES], struct error *err)
{
	struct backup_fixture *fixture = owner;
	if (fixture->loses_hold)
		fixture->store.clock.now_ms += BACKUP_HOLD_MS;
	return backup_holds_end(store_backup_holds(fixture->store.store), id, err);
}

static bool goes_on(void *owner)
{
	return !((struct backup_fixture *)owner)->stops;
}

void backup_fixture_seed(void)
{
	struct backup_fixture made = {.keep = 0};
	store_fixture_open(&made.store);
	ck_assert_int_eq(fixture_create_bucket(made.store.store, "bucket", "main", &made.err), 0);
	backup_fixture_put(&made, "large", BACKUP_LARGE, 1);
	backup_fixture_put(&made, "small", BACKUP_SMALL, 2);
	backup_fixture_shell(made.store.folder,
		"for i in $(seq 600); do ls journal/*.snapshot >/dev/null 2>&1 && exit 0; sleep 0.05; done; exit 1");
	store_fixture_stop(&made.store);
	seeded = unit_scratch_copy(made.store.folder);
	store_fixture_close(&made.store);
}

void backup_fixture_unseed(void)
{
	unit_scratch_remove(seeded);
}

void backup_fixture_open(struct backup_fixture *fixture)
{
	*fixture = (struct backup_fixture){
		.store = {.folder = unit_scratch_copy(seeded), .arena = arena_new(ARENA)}};
	clock_fake_init(&fixture->store.clock, clock_wall_ms());
	store_fixture_start(&fixture->store);
	fixture->place = unit_scratch_make();
	random_bytes(fixture->identities.keys[0], AGE_KEY_BYTES);
	fixture->identities.count = 1;
	age_identity_recipient(&fixture->identities, 0, &fixture->recipient);
}

void backup_fixture_close(struct backup_fixture *fixture)
{
	restore_report_release(&fixture->restored);
	store_fixture_close(&fixture->store);
	unit_scratch_remove(fixture->place);
}

void backup_fixture_put(struct backup_fixture *fixture, const char *key, size_t size, uint64_t seed)
{
	uint8_t *bytes = fixture_noise(size, seed);
	ck_assert_msg(fixture_put(fixture->store.store, "bucket", key, span_of(bytes, size),
			      &fixture->err) == 0,
		"%s", fixture->err.text);
	free(bytes);
}

struct backup_params backup_fixture_params(
	struct backup_fixture *fixture, const struct file_ops *files)
{
	return (struct backup_params){.folder = fixture->store.folder,
		.place = fixture->place,
		.files = files,
		.recipient = fixture->is_sealed ? &fixture->recipient : NULL,
		.holder = {.take = take_hold, .end = end_hold, .owner = fixture},
		.goes_on = goes_on,
		.owner = fixture,
		.keep = fixture->keep,
		.spacing_ms = fixture->spacing_ms};
}

int backup_fixture_run(struct backup_fixture *fixture, const struct file_ops *files)
{
	const struct backup_params params = backup_fixture_params(fixture, files);
	fixture->err = (struct error){0};
	struct backup *backup = backup_open(&params, &fixture->err);
	if (backup == NULL)
		return -1;
	int result = backup_round(backup, &fixture->report, &fixture->err);
	fixture->lacking = fixture->report.lacks->count;
	snprintf(fixture->lack, sizeof(fixture->lack), "%s",
		fixture->lacking > 0 ? fixture->report.lacks->items[0].why : "");
	fixture->report.lacks = NULL;
	if (result == 0 && fixture->keep + (uint64_t)fixture->spacing_ms > 0)
		result = backup_prune(backup, &fixture->pruned, &fixture->err);
	backup_close(backup);
	return result;
}

void backup_fixture_make(struct backup_fixture *fixture)
{
	ck_assert_msg(backup_fixture_run(fixture, file_system()) == 0, "%s", fixture->err.text);
	ck_assert(fixture->report.is_new);
}

static struct backup_target *open_place(struct backup_fixture *fixture)
{
	struct backup_target *target =
		backup_target_open(fixture->place, false, file_system(), &fixture->err);
	ck_assert_msg(target != NULL, "%s", fixture->err.text);
	return target;
}

struct backup_moments backup_fixture_moments(struct backup_fixture *fixture)
{
	struct backup_moments moments;
	struct backup_target *target = open_place(fixture);
	ck_assert_int_eq(backup_moments_list(target, &moments, &fixture->err), 0);
	backup_target_free(target);
	return moments;
}

int backup_fixture_restore(struct backup_fixture *fixture, const struct backup_moment *moment,
	const char *folder, const struct file_ops *files)
{
	struct backup_target *target = open_place(fixture);
	struct backup_vault vault = {
		.identities = fixture->is_sealed ? &fixture->identities : NULL};
	struct backup_moments moments = backup_fixture_moments(fixture);
	restore_report_release(&fixture->restored);
	struct restore_params params = {
		.vault = &vault, .folder = folder, .files = files, .promise_ms = HOUR_MS};
	int result = backup_vault_find(&vault, target, &fixture->err);
	if (result == 0 && moment != NULL)
		params.moment = *moment;
	else if (result == 0)
		result = backup_moments_find(&moments, "latest", &params.moment, &fixture->err);
	if (result == 0)
		result = restore_run(&params, &fixture->restored, &fixture->err);
	backup_moments_release(&moments);
	backup_target_free(target);
	return result;
}

void backup_fixture_open_at(struct store_fixture *out, char *folder)
{
	struct error err = {0};
	const struct store_options options = {.folder = folder, .pack_max_bytes = 1024 * 1024};
	*out = (struct store_fixture){.folder = folder, .arena = arena_new(ARENA)};
	out->store = store_open(&options, &err);
	ck_assert_msg(out->store != NULL, "%s", err.text);
	fixture_await_start(out->store);
}

void backup_fixture_close_at(struct store_fixture *store)
{
	store_close(store->store);
	arena_free(store->arena);
}

bool backup_fixture_holds(struct store_fixture *store, const char *key, size_t size, uint64_t seed)
{
	uint8_t *bytes = fixture_noise(size, seed);
	const bool result = fixture_holds(store, "bucket", key, span_of(bytes, size));
	free(bytes);
	return result;
}

void backup_fixture_bring(struct backup_fixture *fixture, struct store_fixture *out)
{
	char *folder = unit_scratch_make();
	ck_assert_msg(backup_fixture_restore(fixture, NULL, folder, file_system()) == 0, "%s",
		fixture->err.text);
	backup_fixture_open_at(out, folder);
}

void backup_fixture_drop(struct store_fixture *out)
{
	backup_fixture_close_at(out);
	unit_scratch_remove(out->folder);
}

void backup_fixture_shell(const char *folder, const char *script)
{
	char command[2000];
	snprintf(command, sizeof(command), "cd %s && %s", folder, script);
	ck_assert_msg(system(command) == 0, "%s", command);
}
