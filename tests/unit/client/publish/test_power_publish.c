/* The memory of a publisher and of the hash cache, with the power cut before each of their
 * operations: the state is the one before or the one after, what it names as committed is there as
 * long as it is needed, and the same publish succeeds with whatever is left. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/local/folder_files.h"
#include "client/local/hash_cache.h"
#include "client/publish/publish_state.h"
#include "tests/unit/power_disk.h"

static const char ENDPOINT[] = "https://host:9000";
static const char WEIGHTS[] = "weights of a step that was published";
static char *scratch;
static char *folder;
static struct power_disk *disk;

static struct publish_mark mark_of(uint64_t step)
{
	struct publish_mark mark = {.step = step};
	memset(mark.digest.bytes, (int)step + 1, sizeof mark.digest.bytes);
	memset(mark.content.bytes, (int)step + 2, sizeof mark.content.bytes);
	return mark;
}

static void open_state(
	struct publish_state *state, const struct file_ops *files, const char *at, const char *line)
{
	struct error err = {0};
	const struct publish_state_params params = {
		.files = files, .folder = at, .endpoint = ENDPOINT, .run = "b/r"};
	ck_assert_msg(publish_state_open(state, &params, &err) == 0, "cut before \"%s\": %s", line,
		err.text);
}

static void check_copy(const struct publish_state *state, uint64_t step, const char *line)
{
	struct error err = {0};
	struct buffer bytes;
	char *const path = publish_state_path(state, step, "checkpoint/model.safetensors");
	buffer_init(&bytes, 1000);
	ck_assert_msg(
		file_read_all(path, &bytes, &err) == 0 && strcmp(buffer_text(&bytes), WEIGHTS) == 0,
		"cut before \"%s\": the copy of step %u is not there", line, (unsigned)step);
	buffer_release(&bytes);
	free(path);
}

static void copy_checkpoint(const struct publish_state *state)
{
	struct error err = {0};
	char *const fresh = publish_state_new_path(state);
	char *const weights = folder_files_join(fresh, "model.safetensors");
	ck_assert_int_eq(file_remove_tree(state->files, fresh, &err), 0);
	ck_assert_int_eq(file_make_folder(state->files, fresh, 0700, &err), 0);
	ck_assert_int_eq(file_place(state->files, weights, span_text(WEIGHTS), 0600, &err), 0);
	free(weights);
	free(fresh);
}

/* Does what publisher.c does: copies, makes the copy the pending step, sends, commits. */
static void publish(const struct file_ops *files, const char *at, uint64_t step)
{
	struct error err = {0};
	struct publish_state state;
	const struct publish_mark mark = mark_of(step);
	open_state(&state, files, at, "");
	copy_checkpoint(&state);
	ck_assert_int_eq(publish_state_set_pending(&state, &mark, &err), 0);
	check_copy(&state, step, "publishing again");
	ck_assert_int_eq(publish_state_add_sent(&state, "/b/one", &err), 0);
	ck_assert_int_eq(publish_state_add_sent(&state, "/b/two", &err), 0);
	ck_assert_int_eq(publish_state_commit(&state, false, &err), 0);
	publish_state_close(&state);
}

/* Step 0 is committed, and all of it is on the disk. */
static void set_up(void)
{
	scratch = unit_scratch_make();
	folder = folder_files_join(scratch, "state");
	publish(file_system(), folder, 0);
	disk = power_disk_new(scratch);
}

static void tear_down(void)
{
	power_disk_free(disk);
	free(folder);
	unit_scratch_remove(scratch);
}

/* Does what publisher.c does when the checkpoint is not copied: the delta is synced before anything
 * is sent. */
static void publish_delta(const struct file_ops *files, const char *at, uint64_t step)
{
	struct error err = {0};
	struct publish_state state;
	const struct publish_mark mark = mark_of(step);
	open_state(&state, files, at, "");
	ck_assert_int_eq(publish_state_set_pending(&state, &mark, &err), 0);
	char *const delta = publish_state_path(&state, step, "delta");
	ck_assert_int_eq(file_publish(files, delta, span_text(WEIGHTS), 0600, &err), 0);
	ck_assert_int_eq(publish_state_add_sent(&state, "/b/one", &err), 0);
	ck_assert_int_eq(publish_state_commit(&state, false, &err), 0);
	free(delta);
	publish_state_close(&state);
}

/* Checks that the copy of the base is there, and the delta of each step behind it. */
static void check_base(const char *survived, const char *line)
{
	struct publish_state state;
	char *const at = folder_files_join(survived, "state");
	open_state(&state, file_system(), at, line);
	ck_assert_msg(state.has_committed && state.has_base && state.base.step == 0,
		"cut before \"%s\": the base is gone", line);
	check_copy(&state, 0, line);
	for (uint64_t step = 1; step <= state.committed.step; step++) {
		char *const delta = publish_state_path(&state, step, "delta");
		ck_assert_msg(file_exists(delta), "cut before \"%s\": delta %u is gone", line,
			(unsigned)step);
		free(delta);
	}
	publish_state_close(&state);
	free(at);
}

START_TEST(the_base_stays_with_its_deltas)
{
	size_t count;
	publish_delta(file_system(), folder, 1);
	power_disk_free(disk);
	disk = power_disk_new(scratch);
	power_disk_cut_each(disk, (enum power_cut)_i);
	publish_delta(power_disk_files(disk), folder, 2);
	const struct power_taken *const taken = power_disk_taken(disk, &count);
	ck_assert_uint_gt(count, 0);
	for (size_t i = 0; i < count; i++)
		check_base(taken[i].folder, taken[i].line);
	char *const survived = power_disk_cut(disk, (enum power_cut)_i);
	check_base(survived, "nothing more");
	unit_scratch_remove(survived);
}
END_TEST

/* Returns the committed step, and continues as the next call does. */
static uint64_t check_survived(const char *survived, const char *line)
{
	struct error err = {0};
	struct publish_state state;
	struct buffer sent;
	char *const at = folder_files_join(survived, "state");
	open_state(&state, file_system(), at, line);
	ck_assert_msg(state.has_committed, "cut before \"%s\": nothing is committed", line);
	const uint64_t committed = state.committed.step;
	const struct publish_mark wanted = mark_of(committed);
	ck_assert_mem_eq(&state.committed, &wanted, sizeof wanted);
	ck_assert(!state.has_pending || state.pending.step == 1);
	if (committed == 0)
		check_copy(&state, 0, line);
	ck_assert_int_eq(publish_state_read_sent(&state, &sent, &err), 0);
	buffer_release(&sent);
	publish_state_close(&state);
	publish(file_system(), at, 1);
	free(at);
	return committed;
}

START_TEST(the_baseline_advances_or_stays)
{
	size_t count;
	power_disk_cut_each(disk, (enum power_cut)_i);
	publish(power_disk_files(disk), folder, 1);
	const struct power_taken *const taken = power_disk_taken(disk, &count);
	ck_assert_uint_gt(count, 0);
	for (size_t i = 0; i < count; i++)
		check_survived(taken[i].folder, taken[i].line);
	char *const survived = power_disk_cut(disk, (enum power_cut)_i);
	ck_assert_uint_eq(check_survived(survived, "nothing more"), 1);
	unit_scratch_remove(survived);
}
END_TEST

static void check_sent(const char *survived, const struct publish_mark *changed, const char *line)
{
	struct error err = {0};
	struct publish_state state;
	struct buffer sent;
	char *const at = folder_files_join(survived, "state");
	open_state(&state, file_system(), at, line);
	ck_assert_int_eq(publish_state_read_sent(&state, &sent, &err), 0);
	const bool is_changed =
		state.has_pending && digest128_equal(&state.pending.content, &changed->content);
	ck_assert_msg(!is_changed || strstr(buffer_text(&sent), "/b/one") == NULL,
		"cut before \"%s\": sent for another checkpoint", line);
	buffer_release(&sent);
	publish_state_close(&state);
	free(at);
}

/* The trainer has another checkpoint for the pending step: what was sent for the first one does not
 * count. */
START_TEST(a_step_that_changed_begins_anew)
{
	struct error err = {0};
	struct publish_state state;
	size_t count;
	const struct publish_mark first = mark_of(1);
	struct publish_mark changed = first;
	changed.content.bytes[0] ^= 1;
	open_state(&state, file_system(), folder, "");
	copy_checkpoint(&state);
	ck_assert_int_eq(publish_state_set_pending(&state, &first, &err), 0);
	ck_assert_int_eq(publish_state_add_sent(&state, "/b/one", &err), 0);
	publish_state_close(&state);
	power_disk_free(disk);
	disk = power_disk_new(scratch);
	power_disk_cut_each(disk, (enum power_cut)_i);
	open_state(&state, power_disk_files(disk), folder, "");
	copy_checkpoint(&state);
	ck_assert_int_eq(publish_state_set_pending(&state, &changed, &err), 0);
	ck_assert_int_eq(publish_state_add_sent(&state, "/b/two", &err), 0);
	publish_state_close(&state);
	power_disk_cut_now(disk, "nothing more");
	const struct power_taken *const taken = power_disk_taken(disk, &count);
	for (size_t i = 0; i < count; i++)
		check_sent(taken[i].folder, &changed, taken[i].line);
}
END_TEST

START_TEST(a_new_folder_is_never_foreign)
{
	size_t count;
	struct publish_state state;
	char *const fresh = folder_files_join(scratch, "fresh");
	power_disk_cut_each(disk, (enum power_cut)_i);
	open_state(&state, power_disk_files(disk), fresh, "");
	publish_state_close(&state);
	const struct power_taken *const taken = power_disk_taken(disk, &count);
	for (size_t i = 0; i < count; i++) {
		char *const left = folder_files_join(taken[i].folder, "fresh");
		open_state(&state, file_system(), left, taken[i].line);
		publish_state_close(&state);
		free(left);
	}
	char *const survived = power_disk_cut(disk, (enum power_cut)_i);
	char *const file = folder_files_join(survived, "fresh/state.json");
	ck_assert(file_exists(file));
	unit_scratch_remove(survived);
	free(file);
	free(fresh);
}
END_TEST

enum { RECORDS = 20, MS = 1000000, READ_MS = 10000000 };

static struct file_facts facts_of(unsigned number)
{
	return (struct file_facts){
		.size = number, .mtime_ns = MS, .ctime_ns = MS, .inode = number, .device = 1};
}

static void remember(const struct file_ops *files, const char *path, unsigned first)
{
	struct hash_cache *const cache = hash_cache_open(files, path);
	for (unsigned i = first; i < first + RECORDS; i++) {
		const struct file_facts facts = facts_of(i);
		const struct chunk_id hash = {{(uint8_t)i}};
		char name[16];
		snprintf(name, sizeof name, "/f%u", i);
		hash_cache_add(cache, name, &facts, &hash, READ_MS);
	}
	hash_cache_close(cache);
}

static void check_cache(const char *survived, const char *line)
{
	char *const path = folder_files_join(survived, "hashes");
	struct hash_cache *const cache = hash_cache_open(file_system(), path);
	for (unsigned i = 0; i < 2 * RECORDS; i++) {
		const struct file_facts facts = facts_of(i);
		struct chunk_id hash;
		char name[16];
		snprintf(name, sizeof name, "/f%u", i);
		if (hash_cache_find(cache, name, &facts, &hash))
			ck_assert_msg(hash.bytes[0] == i, "cut before \"%s\": another hash of %s",
				line, name);
	}
	hash_cache_close(cache);
	free(path);
}

/* The hash cache is not synced: each record is proven by its own checksum. */
START_TEST(a_cache_forgets_and_never_lies)
{
	size_t count;
	char *const path = folder_files_join(scratch, "hashes");
	remember(power_disk_files(disk), path, 0);
	power_disk_cut_each(disk, (enum power_cut)_i);
	remember(power_disk_files(disk), path, RECORDS);
	const struct power_taken *const taken = power_disk_taken(disk, &count);
	ck_assert_uint_gt(count, 0);
	for (size_t i = 0; i < count; i++)
		check_cache(taken[i].folder, taken[i].line);
	char *const survived = power_disk_cut(disk, (enum power_cut)_i);
	check_cache(survived, "nothing more");
	unit_scratch_remove(survived);
	free(path);
}
END_TEST

/* A disk may also write one sector of a record and not the next. */
START_TEST(a_torn_record_is_forgotten)
{
	enum { RECORD_BYTES = 104, HASH_AT = 56 };
	struct error err = {0};
	struct buffer bytes;
	char *const path = folder_files_join(scratch, "hashes");
	remember(file_system(), path, 1);
	buffer_init(&bytes, 100000);
	ck_assert_int_eq(file_read_all(path, &bytes, &err), 0);
	ck_assert_uint_eq(bytes.len, (RECORDS + 1) * RECORD_BYTES);
	for (size_t at = RECORD_BYTES; at < bytes.len; at += 2 * RECORD_BYTES)
		memset(bytes.data + at + HASH_AT, 0, 8);
	ck_assert_int_eq(file_place(file_system(), path, buffer_span(&bytes), 0600, &err), 0);
	check_cache(scratch, "it was torn");
	buffer_release(&bytes);
	free(path);
}
END_TEST

Suite *test_power_publish_suite(void);
Suite *test_power_publish_suite(void)
{
	Suite *const suite = suite_create("power_publish");
	TCase *const tests = tcase_create("power_publish");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, the_baseline_advances_or_stays, 0, POWER_CUTS);
	tcase_add_loop_test(tests, the_base_stays_with_its_deltas, 0, POWER_CUTS);
	tcase_add_loop_test(tests, a_step_that_changed_begins_anew, 0, POWER_CUTS);
	tcase_add_loop_test(tests, a_new_folder_is_never_foreign, 0, POWER_CUTS);
	tcase_add_loop_test(tests, a_cache_forgets_and_never_lies, 0, POWER_CUTS);
	tcase_add_test(tests, a_torn_record_is_forgotten);
	suite_add_tcase(suite, tests);
	return suite;
}
