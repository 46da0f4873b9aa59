/* Which objects of an anchor are read as shards. */
#include "tests/unit/unit.h"

#include "storage/step_jobs/step_source_form.h"
#include "tests/unit/storage/run_fixture.h"

enum { MOST = 8 };

static struct store_fixture fixture;
static struct step_source_object objects[MOST];
static size_t count;

static void set_up(void)
{
	memset(&fixture, 0, sizeof(fixture));
	run_fixture_open(&fixture);
	count = 0;
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

/* Adds an object. Names must come sorted. */
static void add(const char *name, struct span bytes)
{
	struct object_put_params params = {
		.bucket = fixture_bucket("bucket"), .key = span_text(name)};
	struct object stored;
	struct error err = {0};
	ck_assert_msg(fixture_put_object(fixture.store, &params, bytes, &stored, &err) == 0, "%s",
		err.text);
	ck_assert_uint_lt(count, MOST);
	objects[count++] = (struct step_source_object){
		span_text(name), stored.sequence, bytes.len, xxh3_128(bytes)};
}

static void add_shard(const char *name, const char *tensors)
{
	add(name, run_fixture_shard(&fixture, tensors, 1));
}

/* Opens the anchor with the schema of these tensors. `shards` has a letter for each object: s for a
 * shard, - for another file. */
static void expect(const char *tensors, const char *shards)
{
	const struct step_source_form form = {.objects = objects, .count = count};
	struct error err = {0};
	struct schema *const schema = schema_new();
	const struct span shard = run_fixture_shard(&fixture, tensors, 1);
	uint64_t json = 0;
	ck_assert_int_eq(safetensors_header_size(span_slice(shard, 0, 8), shard.len, &json, &err), 0);
	struct safetensors *const parsed = safetensors_parse(span_slice(shard, 8, (size_t)json),
		shard.len - 8 - json, "schema", &err);
	ck_assert_int_eq(schema_add(schema, parsed, &err), 0);
	schema_finish(schema);
	struct step_form_source *const source =
		step_form_source_open(fixture.store, NULL, &form, schema, &err);
	ck_assert_msg((source != NULL) == (shards != NULL), "%s", err.text);
	for (size_t i = 0; source != NULL && i < count; i++)
		ck_assert_int_eq(
			step_form_source_files(source)->files[i].is_shard, shards[i] == 's');
	step_form_source_close(source);
	safetensors_free(parsed);
	schema_free(schema);
}

static void add_index(const char *text)
{
	add("model.safetensors.index.json", span_text(text));
}

START_TEST(without_an_index_those_in_the_folder_itself)
{
	add_shard("a.safetensors", "ab");
	add("heads/broken.safetensors", span_text("broken"));
	add_shard("heads/same.safetensors", "a");
	add("notes.txt", span_text("notes"));
	expect("ab", "s---");
}
END_TEST

START_TEST(with_an_index_those_that_it_names)
{
	add_shard("a.safetensors", "a");
	add_shard("extra.safetensors", "ab");
	add_index("{\"weight_map\":{\"a\":\"a.safetensors\",\"b\":\"sub/b.safetensors\"}}");
	add_shard("sub/b.safetensors", "b");
	add_shard("sub/c.safetensors", "c");
	expect("ab", "s--s-");
}
END_TEST

static const char *const no_indexes[] = {"", "{", "{\"weight_map\":{}}",
	"{\"weight_map\":{\"b\":\"gone.safetensors\"}}",
	"{\"weight_map\":{\"a\":\"a.safetensors\",\"b\":\"gone.safetensors\"}}"};

START_TEST(an_index_without_its_files_counts_as_none)
{
	add_shard("a.safetensors", "a");
	add_shard("b.safetensors", "b");
	add_index(no_indexes[_i]);
	add_shard("sub/c.safetensors", "a");
	expect("ab", "ss--");
}
END_TEST

START_TEST(where_none_lies_in_the_folder_all_are_shards)
{
	add("config.json", span_text("{}"));
	add_shard("rank0/own.safetensors", "a");
	add_shard("rank1/own.safetensors", "b");
	expect("ab", "-ss");
	expect("a", NULL);
}
END_TEST

/* As servers took it before there was a rule: the run's tensors are those of every file. */
START_TEST(an_anchor_that_only_all_of_them_make_whole_stays_readable)
{
	add_shard("a.safetensors", "a");
	add_shard("extra.safetensors", "b");
	add_index("{\"weight_map\":{\"a\":\"a.safetensors\"}}");
	add_shard("sub/c.safetensors", "c");
	expect("abc", "ss-s");
	expect("a", "s---");
	expect("ab", NULL);
}
END_TEST

Suite *test_step_source_form_suite(void);
Suite *test_step_source_form_suite(void)
{
	Suite *const suite = suite_create("step_source_form");
	TCase *const tests = tcase_create("shards");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, without_an_index_those_in_the_folder_itself);
	tcase_add_test(tests, with_an_index_those_that_it_names);
	tcase_add_loop_test(tests, an_index_without_its_files_counts_as_none, 0,
		(int)(sizeof(no_indexes) / sizeof(*no_indexes)));
	tcase_add_test(tests, where_none_lies_in_the_folder_all_are_shards);
	tcase_add_test(tests, an_anchor_that_only_all_of_them_make_whole_stays_readable);
	suite_add_tcase(suite, tests);
	return suite;
}
