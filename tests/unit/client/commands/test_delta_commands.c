/* diff, apply, fold, transcode and inspect as a person calls them: what they write, what they
 * count, and what they refuse. Checkpoint "1" differs from "0" in one element of one tensor, and
 * "2" differs from "1" in two elements of another tensor. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/local/folder_files.h"
#include "tests/unit/client/command_fixture.h"

static char *scratch;

static void write_checkpoint(const char *name, const char *elements)
{
	static const char header[] =
		"{\"a\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[0,8]},"
		"\"b\":{\"dtype\":\"BF16\",\"shape\":[2,2],\"data_offsets\":[8,16]},"
		"\"c\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[16,24]}}";
	const uint8_t prefix[8] = {sizeof header - 1};
	struct error err = {0};
	struct buffer bytes;
	char *const path = folder_files_join(scratch, name);
	buffer_init(&bytes, 1000);
	buffer_add(&bytes, prefix, sizeof prefix);
	buffer_add_text(&bytes, header);
	buffer_add_text(&bytes, elements); /* two bytes each */
	ck_assert_int_eq(file_place(file_system(), path, buffer_span(&bytes), 0644, &err), 0);
	buffer_release(&bytes);
	free(path);
}

static const struct {
	const char *name;
	command_fn *run;
	enum command_bit bit;
} commands[] = {
	{"apply ", command_apply, COMMAND_APPLY},
	{"diff ", command_diff, COMMAND_DIFF},
	{"fold ", command_fold, COMMAND_FOLD},
	{"inspect ", command_inspect, COMMAND_INSPECT},
	{"transcode ", command_transcode, COMMAND_TRANSCODE},
};

/* Words of the line that begin with '@' are files in the scratch folder. */
static struct command_result run(const char *line)
{
	struct buffer words;
	size_t i = 0;
	while (strncmp(line, commands[i].name, strlen(commands[i].name)) != 0)
		i++;
	buffer_init(&words, 10000);
	for (const char *at = line + strlen(commands[i].name); *at != '\0'; at++) {
		if (*at == '@')
			buffer_format(&words, "%s/", scratch);
		else
			buffer_add_byte(&words, (uint8_t)*at);
	}
	const struct command_result result =
		command_fixture_run(commands[i].run, commands[i].bit, NULL, buffer_text(&words));
	buffer_release(&words);
	return result;
}

static void expect(const char *line, const char *said)
{
	struct command_result result = run(line);
	const char *const output = buffer_text(&result.output);
	ck_assert_msg(result.status == 0, "%s: %s", line, result.err.text);
	ck_assert_msg(strstr(output, said) != NULL, "\"%s\" is missing in:\n%s", said, output);
	command_result_release(&result);
}

static void refuse(const char *line, enum error_kind kind)
{
	struct command_result result = run(line);
	ck_assert_int_eq(result.status, -1);
	ck_assert_msg(result.err.kind == kind, "%s: %s", line, result.err.text);
	ck_assert(!result.usage && result.output.len == 0);
	command_result_release(&result);
}

static void set_up(void)
{
	scratch = unit_scratch_make();
	write_checkpoint("0", "a0a1a2a3b0b1b2b3c0c1c2c3");
	write_checkpoint("1", "a0a1a2aXb0b1b2b3c0c1c2c3");
	write_checkpoint("2", "a0a1a2aXb0bXb2bXc0c1c2c3");
	expect("diff --step 1 @0 @1 @to1", "1 of 12 elements changed in 1 of 3 tensors;");
	expect("diff --step 2 @1 @2 @to2", "2 of 12 elements changed in 1 of 3 tensors;");
}

static void tear_down(void)
{
	unit_scratch_remove(scratch);
}

static void read_file(const char *name, struct buffer *out)
{
	struct error err = {0};
	char *const path = folder_files_join(scratch, name);
	buffer_init(out, 100000);
	ck_assert_msg(file_read_all(path, out, &err) == 0, "%s", err.text);
	free(path);
}

static void expect_same(const char *one, const char *other)
{
	struct buffer a;
	struct buffer b;
	read_file(one, &a);
	read_file(other, &b);
	ck_assert(span_equal(buffer_span(&a), buffer_span(&b)));
	buffer_release(&a);
	buffer_release(&b);
}

static bool is_there(const char *name)
{
	char *const path = folder_files_join(scratch, name);
	const bool found = file_exists(path);
	free(path);
	return found;
}

START_TEST(a_delta_makes_the_next_checkpoint_and_tells_what_it_changed)
{
	expect("apply --json @0 @to1 @out", "\"changed_elements\":1,\"changed_tensors\":1}");
	expect_same("out", "1");
	expect("apply @1 @to2 @out2", ", 2 elements changed");
	expect_same("out2", "2");
	expect("diff --format full @0 @1 @whole", "1 of 12 elements changed in 1 of 3 tensors;");
	struct command_result result = run("apply @0 @whole @out3");
	ck_assert_int_eq(result.status, 0);
	ck_assert_msg(strstr(buffer_text(&result.output), "changed") == NULL, "%s",
		buffer_text(&result.output));
	command_result_release(&result);
}
END_TEST

START_TEST(what_is_not_there_is_named_with_the_reason)
{
	struct command_result result = run("inspect @nothing");
	ck_assert_int_eq(result.err.kind, ERROR_NOT_FOUND);
	ck_assert_msg(strstr(result.err.text, "/nothing': No such file or directory") != NULL, "%s",
		result.err.text);
	ck_assert_msg(strstr(result.err.text, "delta") == NULL || strstr(scratch, "delta") != NULL,
		"%s", result.err.text);
	command_result_release(&result);
}
END_TEST

/* Returns `"digest":"..."` as inspect prints it. */
static void read_digest(const char *line, char *out, size_t size)
{
	struct command_result result = run(line);
	const char *const from = strstr(buffer_text(&result.output), "\"digest\":");
	ck_assert_ptr_nonnull(from);
	snprintf(out, size, "%.*s", (int)strcspn(from, ","), from);
	command_result_release(&result);
}

START_TEST(the_digest_that_is_told_is_that_of_what_was_made)
{
	char base[200];
	char made[200];
	read_digest("inspect --json @0", base, sizeof base);
	read_digest("inspect --json @1", made, sizeof made);
	ck_assert_str_ne(base, made);
	expect("apply --json @0 @to1 @out", made);
}
END_TEST

START_TEST(a_folder_with_one_file_is_a_folder)
{
	struct error err = {0};
	char *const path = folder_files_join(scratch, "folder/model.safetensors");
	char *const from = folder_files_join(scratch, "1");
	ck_assert_int_eq(file_make_parent(file_system(), path, 0755, &err), 0);
	ck_assert_int_eq(file_clone(file_system(), from, path, &err), 0);
	expect("inspect --json @folder", "\"folder\":true,\"files\":1,");
	expect("inspect --json @1", "\"folder\":false,\"files\":1,");
	free(from);
	free(path);
}
END_TEST

START_TEST(a_delta_of_another_checkpoint_makes_nothing)
{
	refuse("apply @0 @to2 @out", ERROR_WRONG_BASE);
	refuse("apply @0 @1 @2", ERROR_EXISTS);
	refuse("apply @none @to1 @out", ERROR_NOT_FOUND);
	refuse("diff @0 @none @out", ERROR_NOT_FOUND);
	refuse("fold --base @1 @to1 @to2 @out", ERROR_WRONG_BASE);
	refuse("transcode --base @2 --to slime-xor @to1 @out", ERROR_WRONG_BASE);
	ck_assert(!is_there("out"));
}
END_TEST

START_TEST(two_deltas_become_one_of_the_step_that_is_named)
{
	expect("fold --json --base @0 --step 7 @to1 @to2 @folded", "\"format\":\"ulp-class\"");
	expect("inspect --json @folded", "\"step\":7,");
	expect("inspect --json @folded", "\"changed_elements\":3,\"changed_tensors\":2}");
	expect("apply @0 @folded @out", "");
	expect_same("out", "2");
}
END_TEST

START_TEST(a_delta_in_another_format_makes_the_same_checkpoint)
{
	static const char format[] = "\"format\":\"trl-gap\"";
	expect("transcode --json --base @0 --to trl-gap --step 9 @to1 @other", format);
	expect("inspect --json @other", "\"step\":9,");
	expect("inspect --json @other", format);
	expect("apply @0 @other @out", "");
	expect_same("out", "1");
}
END_TEST

START_TEST(a_delta_tells_its_step_and_how_much_it_changes)
{
	expect("inspect --json @to2", "\"step\":2,");
	expect("inspect @to2", "ulp-class, 2 elements of 1 tensors changed");
	expect("inspect --json --stats --base @1 @to2",
		"\"elements\":12,\"density\":0.166667,\"changed\":2,");
	expect("inspect --json --stats --base @1 @to2",
		"{\"event\":\"delta_tensor\",\"name\":\"b\",\"dtype\":\"BF16\",");
}
END_TEST

START_TEST(every_tensor_of_a_checkpoint_is_listed)
{
	expect("inspect --json --tensors @1", "\"files\":1,\"tensors\":3,\"bytes\":");
	expect("inspect --json --tensors @1", "\"name\":\"a\",\"dtype\":\"BF16\",\"shape\":[4],");
	expect("inspect --json --tensors @1", "\"name\":\"b\",\"dtype\":\"BF16\",\"shape\":[2,2],");
	expect("inspect --tensors @1", "  BF16 [4]  c\n");
}
END_TEST

static const char *const misuses[] = {
	"diff --format gzip @0 @1 @out",
	"diff --format slime-xor --checksum md5 @0 @1 @out",
	"fold --to trl-gap @to1 @to2 @out", /* --to and --step need --base */
	"fold --step 7 @to1 @to2 @out",
	"fold --base @0 --to gzip @to1 @to2 @out",
	"transcode --base @0 @to1 @out",
	"transcode --to trl-gap @to1 @out",
	"inspect --tensors @to1",
	"inspect --stats @1",
};

START_TEST(misuse_makes_nothing)
{
	struct command_result result = run(misuses[_i]);
	ck_assert_msg(result.status == -1 && result.usage, "%s: %s", misuses[_i], result.err.text);
	ck_assert(result.output.len == 0 && !is_there("out"));
	command_result_release(&result);
}
END_TEST

Suite *test_delta_commands_suite(void);

Suite *test_delta_commands_suite(void)
{
	Suite *const suite = suite_create("delta_commands");
	TCase *const tests = tcase_create("delta_commands");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_delta_makes_the_next_checkpoint_and_tells_what_it_changed);
	tcase_add_test(tests, what_is_not_there_is_named_with_the_reason);
	tcase_add_test(tests, the_digest_that_is_told_is_that_of_what_was_made);
	tcase_add_test(tests, a_folder_with_one_file_is_a_folder);
	tcase_add_test(tests, a_delta_of_another_checkpoint_makes_nothing);
	tcase_add_test(tests, two_deltas_become_one_of_the_step_that_is_named);
	tcase_add_test(tests, a_delta_in_another_format_makes_the_same_checkpoint);
	tcase_add_test(tests, a_delta_tells_its_step_and_how_much_it_changes);
	tcase_add_test(tests, every_tensor_of_a_checkpoint_is_listed);
	tcase_add_loop_test(tests, misuse_makes_nothing, 0, sizeof misuses / sizeof misuses[0]);
	suite_add_tcase(suite, tests);
	return suite;
}
