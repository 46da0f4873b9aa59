/* One rank's part of a delta: only weights of its shards may have changed, and the base must be
 * exactly the step that workers hold. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/local/folder_files.h"
#include "client/publish/rank_delta.h"
#include "client/publish/rank_share.h"

static char *folder;

static void put(const char *name, struct span bytes)
{
	struct error err = {0};
	char *const path = folder_files_join(folder, name);
	ck_assert_int_eq(file_make_parent(file_system(), path, 0755, &err), 0);
	ck_assert_int_eq(file_place(file_system(), path, bytes, 0600, &err), 0);
	free(path);
}

static void put_text(const char *name, const char *text)
{
	put(name, span_text(text));
}

static void take_away(const char *name)
{
	struct error err = {0};
	char *const path = folder_files_join(folder, name);
	ck_assert_int_eq(file_remove_tree(file_system(), path, &err), 0);
	free(path);
}

/* One BF16 tensor of two elements. */
static void put_shard(const char *name, const char *tensor, const char *values)
{
	char header[128];
	struct buffer bytes;
	const int length = snprintf(header, sizeof header,
		"{\"%s\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}}", tensor);
	const uint8_t prefix[8] = {(uint8_t)length};
	buffer_init(&bytes, 1024);
	buffer_add(&bytes, prefix, sizeof prefix);
	buffer_add_text(&bytes, header);
	buffer_add(&bytes, values, 4);
	put(name, buffer_span(&bytes));
	buffer_release(&bytes);
}

static void put_share(const char *weights, const char *side)
{
	char name[64];
	snprintf(name, sizeof name, "%s/b.safetensors", side);
	put_shard(name, "w", weights);
	snprintf(name, sizeof name, "%s/c.safetensors", side);
	put_shard(name, "still", "same");
	snprintf(name, sizeof name, "%s/config.json", side);
	put_text(name, "{\"a\": 1}");
}

static void set_up(void)
{
	folder = unit_scratch_make();
	put_share("abcd", "base");
	put_share("abce", "next");
}

static void tear_down(void)
{
	unit_scratch_remove(folder);
}

static struct digest128 digest_of(const char *side)
{
	struct error err = {0};
	struct rank_share share;
	char *const path = folder_files_join(folder, side);
	ck_assert_msg(rank_share_open(&share, path, 1, NULL, &err) == 0, "%s", err.text);
	const struct digest128 digest = share.mark.digest;
	rank_share_release(&share);
	free(path);
	return digest;
}

static int make(const struct digest128 *base_digest, struct delta_stats *stats, struct error *err)
{
	char *const base = folder_files_join(folder, "base");
	char *const next = folder_files_join(folder, "next");
	char *const out = folder_files_join(folder, "out");
	struct rank_share share;
	ck_assert_msg(rank_share_open(&share, next, 1, NULL, err) == 0, "%s", err->text);
	const struct rank_delta_params params = {.files = file_system(),
		.base = base,
		.next = next,
		.out = out,
		.step = 1,
		.threads = 1,
		.schema = checkpoint_schema(share.snapshot.checkpoint),
		.next_digests = share.snapshot.tensor_digests,
		.base_digest = base_digest};
	const int result = rank_delta_make(&params, stats, err);
	rank_share_release(&share);
	free(out);
	free(next);
	free(base);
	return result;
}

START_TEST(a_delta_has_a_file_for_each_shard)
{
	struct error err = {0};
	struct delta_stats stats;
	struct folder_files made;
	const struct digest128 base = digest_of("base");
	put_text("out/left-from-before", "x");
	ck_assert_msg(make(&base, &stats, &err) == 0, "%s", err.text);
	char *const out = folder_files_join(folder, "out");
	ck_assert_int_eq(folder_files_read(out, &made, &err), 0);
	ck_assert_uint_eq(made.count, 2);
	ck_assert_str_eq(made.files[0].name, "b.safetensors");
	ck_assert_str_eq(made.files[1].name, "c.safetensors");
	ck_assert_uint_eq(stats.elements, 4);
	ck_assert_uint_eq(stats.changed_elements, 1);
	folder_files_release(&made);
	free(out);
}
END_TEST

/* The index names the shards of all ranks: a reader of the delta finds every tensor by it. */
START_TEST(who_has_the_index_says_where_each_tensor_is)
{
	static const char index[] = "{\"metadata\":{\"total_size\":8},\"weight_map\":"
				    "{\"w\":\"b.safetensors\",\"others\":\"z.safetensors\"}}";
	struct error err = {0};
	struct delta_stats stats;
	struct buffer text;
	put_text("base/" RANK_SHARE_INDEX, index);
	put_text("next/" RANK_SHARE_INDEX, index);
	ck_assert_msg(make(NULL, &stats, &err) == 0, "%s", err.text);
	char *const path = folder_files_join(folder, "out/" RANK_SHARE_INDEX_NAME);
	buffer_init(&text, 4096);
	ck_assert_msg(file_read_all(path, &text, &err) == 0, "%s", err.text);
	ck_assert_ptr_ne(strstr(buffer_text(&text), "\"delta_encoding\":\"ulp-class\""), NULL);
	ck_assert_ptr_ne(strstr(buffer_text(&text), "\"w\":\"b.safetensors\""), NULL);
	ck_assert_ptr_ne(strstr(buffer_text(&text), "\"others\":\"z.safetensors\""), NULL);
	buffer_release(&text);
	free(path);
}
END_TEST

START_TEST(a_baseline_that_is_not_the_step_is_not_built_upon)
{
	struct error err = {0};
	struct delta_stats stats;
	const struct digest128 base = digest_of("base");
	put_shard(_i == 0 ? "base/b.safetensors" : "base/c.safetensors", _i == 0 ? "w" : "still",
		"lost");
	ck_assert_int_eq(make(&base, &stats, &err), -1);
	ck_assert_msg(err.kind == ERROR_WRONG_BASE, "%s", err.text);
}
END_TEST

/* "+" is a new file, "-" a file that is gone, "!" a file that has changed. */
static const char *const changes[] = {"+tokenizer.json", "-tokenizer.json", "+added.json",
	"-added.json", "!config.json", "+z.safetensors", "-z.safetensors", "+a.safetensors",
	"-a.safetensors", "!c.safetensors", "!" RANK_SHARE_INDEX};

static void change(const char *what)
{
	char name[64];
	for (unsigned i = 0; i < 2; i++) {
		const bool is_next = i == 1;
		snprintf(name, sizeof name, "%s/%s", is_next ? "next" : "base", what + 1);
		if (what[0] == (is_next ? '-' : '+'))
			take_away(name);
		else if (strstr(name, ".safetensors") != NULL)
			put_shard(name, what[0] == '!' && is_next ? "renamed" : what, "abcd");
		else
			put_text(name, what[0] == '!' && is_next ? "{\"a\": 2}" : "{}");
	}
}

/* Workers would not get the change: only an anchor has all files. */
START_TEST(whatever_else_has_changed_wants_an_anchor)
{
	struct error err = {0};
	struct delta_stats stats;
	change(changes[_i]);
	ck_assert_int_eq(make(NULL, &stats, &err), -1);
	ck_assert_msg(err.kind == ERROR_UNSUPPORTED, "%s: %s", changes[_i], err.text);
	ck_assert_msg(
		changes[_i][0] == '-' || strstr(err.text, changes[_i] + 1) != NULL, "%s", err.text);
	ck_assert_msg(strstr(err.text, "--anchor always") != NULL, "%s", err.text);
}
END_TEST

Suite *test_rank_delta_suite(void);
Suite *test_rank_delta_suite(void)
{
	Suite *const suite = suite_create("rank_delta");
	TCase *const tests = tcase_create("rank_delta");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_delta_has_a_file_for_each_shard);
	tcase_add_test(tests, who_has_the_index_says_where_each_tensor_is);
	tcase_add_loop_test(tests, a_baseline_that_is_not_the_step_is_not_built_upon, 0, 2);
	tcase_add_loop_test(tests, whatever_else_has_changed_wants_an_anchor, 0,
		sizeof changes / sizeof changes[0]);
	suite_add_tcase(suite, tests);
	return suite;
}
