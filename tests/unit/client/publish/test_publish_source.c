/* A checkpoint that is published where it lies: changes meanwhile are noticed, and an unchanged
 * checkpoint is found again. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/local/folder_files.h"
#include "client/publish/publish_source.h"

static const char WEIGHTS[] =
	"{\"w\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}}      ";
static char *scratch;
static struct publish_state state;
static struct publish_source source;

static void put(const char *name, struct span bytes)
{
	struct error err = {0};
	char *const path = folder_files_join(scratch, name);
	ck_assert_int_eq(file_make_parent(file_system(), path, 0755, &err), 0);
	ck_assert_msg(file_place(file_system(), path, bytes, 0644, &err) == 0, "%s", err.text);
	free(path);
}

static void put_weights(const char *name, const char *values)
{
	struct buffer bytes;
	const uint8_t length[8] = {sizeof WEIGHTS - 1};
	buffer_init(&bytes, 1024);
	buffer_add(&bytes, length, sizeof length);
	buffer_add_text(&bytes, WEIGHTS);
	buffer_add(&bytes, values, 4);
	put(name, buffer_span(&bytes));
	buffer_release(&bytes);
}

static void take(const char *name)
{
	struct error err = {0};
	char *const path = folder_files_join(scratch, name);
	ck_assert_msg(publish_source_take(&source, &state, path, NULL, &err) == 0, "%s", err.text);
	free(path);
}

/* Step 3 has been published from the folder "trained". */
static void set_up(void)
{
	struct error err = {0};
	scratch = unit_scratch_make();
	char *const folder = folder_files_join(scratch, "state");
	const struct publish_state_params params = {
		.files = file_system(), .folder = folder, .endpoint = "http://host", .run = "b/r"};
	ck_assert_int_eq(publish_state_open(&state, &params, &err), 0);
	free(folder);
	put_weights("trained/model.safetensors", "abcd");
	put("trained/config.json", span_text("{}"));
	put("state/step-000003/sent", span_text(""));
	state.has_committed = true;
	state.committed.step = 3;
	take("trained");
	publish_source_note(&source, &state);
}

static void tear_down(void)
{
	publish_source_release(&source);
	publish_state_close(&state);
	unit_scratch_remove(scratch);
}

static bool is_found(void)
{
	struct checkpoint *const found = publish_source_find(&state);
	checkpoint_close(found);
	return found != NULL;
}

static enum error_kind checked(void)
{
	struct error err = {0};
	return publish_source_check(&source, &err) == 0 ? ERROR_NONE : err.kind;
}

START_TEST(what_was_left_alone_is_found_again)
{
	if (source.is_copy)
		return;
	ck_assert(is_found());
	ck_assert_int_eq(checked(), ERROR_NONE);
	state.committed.step = 4;
	ck_assert(!is_found());
}
END_TEST

START_TEST(one_file_is_a_checkpoint_too)
{
	put_weights("alone.safetensors", "abcd");
	publish_source_release(&source);
	take("alone.safetensors");
	if (source.is_copy)
		return;
	ck_assert_uint_eq(source.count, 1);
	char *const path = publish_source_file(&source, source.names[0]);
	ck_assert_str_eq(path, source.path);
	free(path);
	publish_source_note(&source, &state);
	ck_assert(is_found());
	put_weights("alone.safetensors", "abcd");
	ck_assert_int_eq(checked(), ERROR_INVALID);
	ck_assert(!is_found());
}
END_TEST

static void overwrite(void)
{
	put_weights("trained/model.safetensors", "abce");
}

static void overwrite_config(void)
{
	put("trained/config.json", span_text("{}"));
}

static void append(void)
{
	char *const path = folder_files_join(scratch, "trained/config.json");
	FILE *const file = fopen(path, "a");
	ck_assert_ptr_nonnull(file);
	fputs(" ", file);
	fclose(file);
	free(path);
}

static void remove_config(void)
{
	char *const path = folder_files_join(scratch, "trained/config.json");
	ck_assert_int_eq(unlink(path), 0);
	free(path);
}

static const struct {
	void (*change)(void);
	enum error_kind seen;
} changes[] = {{overwrite, ERROR_INVALID}, {overwrite_config, ERROR_INVALID},
	{append, ERROR_INVALID}, {remove_config, ERROR_INVALID}};

START_TEST(what_changed_is_seen_and_not_found)
{
	if (source.is_copy)
		return;
	changes[_i].change();
	ck_assert_int_eq(checked(), changes[_i].seen);
	ck_assert(!is_found());
}
END_TEST

START_TEST(files_that_were_not_taken_do_not_matter)
{
	struct error err = {0};
	if (source.is_copy)
		return;
	put("trained/optimizer.pt", span_text("state"));
	struct checkpoint *const found = publish_source_find(&state);
	ck_assert_ptr_nonnull(found);
	ck_assert_uint_eq(checkpoint_file_count(found), 2);
	checkpoint_close(found);
	const struct checkpoint_choice taken = publish_source_choice(&source);
	struct checkpoint *const again = checkpoint_open_chosen(source.path, &taken, &err);
	ck_assert_ptr_nonnull(again);
	ck_assert_uint_eq(checkpoint_file_count(again), 2);
	checkpoint_close(again);
}
END_TEST

static const char *const notes[] = {"", "\n", "/nowhere\n", "no end"};

START_TEST(a_note_that_is_torn_finds_nothing)
{
	put("state/step-000003/source", span_text(notes[_i]));
	ck_assert(!is_found());
}
END_TEST

Suite *test_publish_source_suite(void);
Suite *test_publish_source_suite(void)
{
	Suite *const suite = suite_create("publish_source");
	TCase *const tests = tcase_create("publish_source");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, what_was_left_alone_is_found_again);
	tcase_add_test(tests, one_file_is_a_checkpoint_too);
	tcase_add_loop_test(
		tests, what_changed_is_seen_and_not_found, 0, sizeof changes / sizeof changes[0]);
	tcase_add_test(tests, files_that_were_not_taken_do_not_matter);
	tcase_add_loop_test(
		tests, a_note_that_is_torn_finds_nothing, 0, sizeof notes / sizeof notes[0]);
	suite_add_tcase(suite, tests);
	return suite;
}
