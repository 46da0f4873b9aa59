/* Parts are merged into one manifest: what they may share, and what shows that they do not belong
 * to one step. */
#include "tests/unit/unit.h"

#include <string.h>

#include "storage/runs/step_part_set.h"

enum { MOST = 4 };

static struct arena *arena;
static struct error err;
static struct part_message parts[MOST];

/* Part i has one object, a file of its own, the file that all parts have, and one tensor: "a", "b",
 * ... in the order of `names`. */
static void make(const char *names)
{
	memset(parts, 0, sizeof(parts));
	for (size_t i = 0; i < strlen(names); i++) {
		const char *const name = arena_format(arena, "%c", names[i]);
		struct step_message *const step = &parts[i].step;
		struct step_object *const object = arena_take(arena, sizeof(*object));
		*object = (struct step_object){
			.name = span_text(name), .key = span_text(name), .size = i};
		step->forms[0] = (struct step_form){STEP_ANCHOR, span_text("full"), object, 1};
		step->form_count = 1;
		step->files = arena_take_array(arena, 2, sizeof(*step->files));
		step->files[0] = (struct step_file){
			span_text("config.json"), 7, xxh3_128(span_text("config"))};
		step->files[1] = (struct step_file){span_text(name), i, xxh3_128(span_text(name))};
		step->file_count = 2;
		step->label = span_text(arena_format(arena, "part %zu", i));
		parts[i].tensors = arena_take(arena, sizeof(*parts[i].tensors));
		parts[i].tensors[0] = (struct part_tensor){
			.name = span_text(name), .digest = xxh3_128(span_text(name))};
		parts[i].tensor_count = 1;
	}
}

static void set_up(void)
{
	err = (struct error){0};
	arena = arena_new(10000000);
	make("cab");
}

static void tear_down(void)
{
	arena_free(arena);
}

static int add_all(struct step_part_set *set, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (step_part_set_add(set, i, &parts[i], &err) != 0)
			return -1;
	return 0;
}

static int merge(size_t count, struct step_message *out)
{
	struct step_part_set *const set = step_part_set_new(count, arena);
	return add_all(set, count) != 0 ? -1 : step_part_set_merge(set, out, &err);
}

static void expect_mismatch(size_t count)
{
	struct step_message step;
	err = (struct error){0};
	ck_assert_int_eq(merge(count, &step), -1);
	ck_assert_msg(
		err.kind == ERROR_PARTS_MISMATCH, "%s: %s", error_kind_name(err.kind), err.text);
}

START_TEST(parts_that_fit_are_one_step)
{
	struct step_message step;
	ck_assert_msg(merge(3, &step) == 0, "%s", err.text);
	ck_assert(step.form_count == 1 && step.forms[0].object_count == 3 &&
		span_equal_text(step.label, "part 0"));
	static const char *const names[] = {"a", "b", "c"};
	for (size_t i = 0; i < 3; i++)
		ck_assert(span_equal_text(step.forms[0].objects[i].name, names[i]));
	ck_assert_uint_eq(step.forms[0].objects[0].size, 1);
	static const char *const files[] = {"a", "b", "c", "config.json"};
	ck_assert_uint_eq(step.file_count, 4);
	for (size_t i = 0; i < 4; i++)
		ck_assert(span_equal_text(step.files[i].path, files[i]));
}
END_TEST

START_TEST(an_object_is_in_one_part)
{
	make("aa");
	expect_mismatch(2);
	ck_assert_ptr_nonnull(strstr(err.text, "The object 'a' is in part 0 and in part 1"));
	make("bcc");
	expect_mismatch(3);
	ck_assert_ptr_nonnull(strstr(err.text, "'c' is in part 1 and in part 2"));
}
END_TEST

START_TEST(a_file_of_several_parts_is_the_same_in_all)
{
	parts[1].step.files[0].size++;
	expect_mismatch(3);
	parts[1].step.files[0].size--;
	parts[2].step.files[0].digest.bytes[5] ^= 1;
	expect_mismatch(3);
}
END_TEST

START_TEST(all_parts_have_the_same_forms)
{
	parts[1].step.forms[0].kind = STEP_DELTA;
	expect_mismatch(2);
	make("ab");
	parts[1].step.forms[0].format = span_text("sharded");
	expect_mismatch(2);
	make("ab");
	parts[1].step.form_count = 0;
	expect_mismatch(2);
}
END_TEST

START_TEST(there_are_as_many_parts_as_announced)
{
	struct step_message step;
	struct step_part_set *const set = step_part_set_new(2, arena);
	ck_assert_int_eq(add_all(set, 1), 0);
	ck_assert_int_eq(step_part_set_merge(set, &step, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	ck_assert_int_eq(step_part_set_add(set, 1, &parts[1], &err), 0);
	ck_assert_int_eq(step_part_set_add(set, 2, &parts[2], &err), -1);
	ck_assert_int_eq(err.kind, ERROR_PARTS_MISMATCH);
}
END_TEST

/* The schema has the named tensors, one letter each. */
static int fill(const char *names, size_t count, struct step_message *out)
{
	char *json = arena_format(arena, "{");
	for (size_t i = 0; i < strlen(names); i++)
		json = arena_format(arena,
			"%s%s\"%c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%zu,%zu]}",
			json, i == 0 ? "" : ",", names[i], i, i + 1);
	json = arena_format(arena, "%s}", json);
	struct safetensors *const shard =
		safetensors_parse(span_text(json), strlen(names), "shard", &err);
	ck_assert_msg(shard != NULL, "%s", err.text);
	struct schema *const schema = schema_new();
	ck_assert_int_eq(schema_add(schema, shard, &err), 0);
	schema_finish(schema);
	struct step_part_set *const set = step_part_set_new(count, arena);
	ck_assert_int_eq(add_all(set, count), 0);
	err = (struct error){0};
	const int result = step_part_set_fill(set, schema, out, &err);
	if (result == 0) {
		const struct digest128 digest = schema_checkpoint_digest(
			schema, (const struct digest128 *)out->tensor_digests.data);
		ck_assert(digest128_equal(&digest, &out->digest));
	}
	schema_free(schema);
	safetensors_free(shard);
	return result;
}

START_TEST(digests_stand_in_the_order_of_the_schema)
{
	struct step_message step;
	ck_assert_msg(fill("abc", 3, &step) == 0, "%s", err.text);
	ck_assert_uint_eq(step.tensor_digests.len, 3 * sizeof(struct digest128));
	const struct digest128 *const digests = (const struct digest128 *)step.tensor_digests.data;
	static const char *const names[] = {"a", "b", "c"};
	for (size_t i = 0; i < 3; i++) {
		const struct digest128 digest = xxh3_128(span_text(names[i]));
		ck_assert(digest128_equal(&digests[i], &digest));
	}
}
END_TEST

static const struct {
	const char *parts;
	const char *schema;
	const char *words;
} faults[] = {
	{"aab", "ab", "'a' is in part 0 and in part 1"},
	{"abb", "ab", "'b' is in part 1 and in part 2"},
	{"ac", "abc", "'b' is in no part"},
	{"ab", "abc", "'c' is in no part"},
	{"abc", "ab", "'c' of a part is not in the run's schema"},
	{"abc", "bc", "'a' of a part is not in the run's schema"},
};

START_TEST(tensors_are_those_of_the_schema)
{
	struct step_message step;
	make(faults[_i].parts);
	ck_assert_int_eq(fill(faults[_i].schema, strlen(faults[_i].parts), &step), -1);
	ck_assert_int_eq(err.kind, ERROR_SCHEMA_MISMATCH);
	ck_assert_msg(strstr(err.text, faults[_i].words) != NULL, "%s", err.text);
}
END_TEST

Suite *test_step_part_set_suite(void);
Suite *test_step_part_set_suite(void)
{
	Suite *const suite = suite_create("step_part_set");
	TCase *const tests = tcase_create("step_part_set");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, parts_that_fit_are_one_step);
	tcase_add_test(tests, an_object_is_in_one_part);
	tcase_add_test(tests, a_file_of_several_parts_is_the_same_in_all);
	tcase_add_test(tests, all_parts_have_the_same_forms);
	tcase_add_test(tests, there_are_as_many_parts_as_announced);
	tcase_add_test(tests, digests_stand_in_the_order_of_the_schema);
	tcase_add_loop_test(
		tests, tensors_are_those_of_the_schema, 0, sizeof(faults) / sizeof(faults[0]));
	suite_add_tcase(suite, tests);
	return suite;
}
