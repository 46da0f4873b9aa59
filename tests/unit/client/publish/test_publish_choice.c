/* Files that a trainer keeps for itself are left out. Files that engines need, and files that the
 * caller includes, are published. */
#include "tests/unit/unit.h"

#include <string.h>

#include "client/publish/publish_choice.h"

enum { LARGE = PUBLISH_CHOICE_MAX_BYTES + 1 };

static const struct {
	const char *path;
	uint64_t size;
	bool wanted;
} FILES[] = {
	{"model.safetensors", LARGE, true},
	{"model-00001-of-00002.safetensors", LARGE, true},
	{"config.json", 9, true},
	{"generation_config.json", 9, true},
	{"tokenizer.json", 40 << 20, true},
	{"tokenizer.model", 5 << 20, true},
	{"merges.txt", 9, true},
	{"chat_template.jinja", 9, true},
	{"modeling_own.py", 9, true},
	{"trainer_state.json", 9, true},
	{"scheduler/scheduler_config.json", 9, true},
	{"vae/config.json", 9, true},
	{"notes.onnx", PUBLISH_CHOICE_MAX_BYTES, true},
	{"optimizer.pt", 9, false},
	{"optimizer.bin", 9, false},
	{"optimizer_0/__0_0.distcp", 9, false},
	{"scheduler.pt", 9, false},
	{"scaler.pt", 9, false},
	{"rng_state.pth", 9, false},
	{"rng_state_3.pth", 9, false},
	{"random_states_0.pkl", 9, false},
	{"training_args.bin", 9, false},
	{"global_step40/mp_rank_00_model_states.pt", 9, false},
	{"a/global_step40/b.txt", 9, false},
	{"bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt", 9, false},
	{"pytorch_model_fsdp_0/.metadata2", 9, false},
	{"pytorch_model.bin", LARGE, false},
	{"model.gguf", LARGE, false},
	{"optimizer.safetensors", 9, false},
	{"checkpoint-500/config.json", 9, false},
	{"a/checkpoint-12/model.safetensors", 9, false},
	{"checkpoint-notes.md", 9, true},
	{"original/params.json", 9, true},
};
/* .safetensors that are not shards */
static const struct {
	const char *path;
	uint64_t size;
	bool wanted;
} OTHERS[] = {
	{"2_Dense/model.safetensors", PUBLISH_CHOICE_MAX_BYTES, true},
	{"original/consolidated.safetensors", LARGE, false},
	{"model-00001-of-00009.safetensors", 9, false},
	{"adapter_model.safetensors", LARGE, false},
};

START_TEST(trainers_files_and_large_ones_stay_behind)
{
	struct publish_choice choice;
	publish_choice_init(&choice, NULL, 0, NULL);
	ck_assert_msg(choice.choice.wants(choice.choice.chooser, FILES[_i].path, FILES[_i].size) ==
			FILES[_i].wanted,
		"%s", FILES[_i].path);
	ck_assert_uint_eq(choice.left_count, FILES[_i].wanted ? 0 : 1);
	ck_assert_uint_eq(choice.left_bytes, FILES[_i].wanted ? 0 : FILES[_i].size);
	publish_choice_release(&choice);
}
END_TEST

START_TEST(what_is_not_a_shard_is_asked_for_again)
{
	static const char *const all[] = {"*"};
	struct publish_choice choice;
	publish_choice_init(&choice, NULL, 0, NULL);
	ck_assert(choice.choice.wants(choice.choice.chooser, OTHERS[_i].path, OTHERS[_i].size));
	ck_assert_msg(choice.choice.wants_other(choice.choice.chooser, OTHERS[_i].path,
			      OTHERS[_i].size) == OTHERS[_i].wanted,
		"%s", OTHERS[_i].path);
	ck_assert_uint_eq(choice.left_count, OTHERS[_i].wanted ? 0 : 1);
	ck_assert_uint_eq(choice.left_bytes, OTHERS[_i].wanted ? 0 : OTHERS[_i].size);
	publish_choice_release(&choice);
	publish_choice_init(&choice, all, 1, NULL);
	ck_assert(publish_choice_wants_other(&choice, OTHERS[_i].path, OTHERS[_i].size));
	ck_assert_uint_eq(choice.left_count, 0);
	publish_choice_release(&choice);
}
END_TEST

START_TEST(what_is_included_comes_whatever_it_is)
{
	static const char *const patterns[] = {"optimizer.*", "global_step*"};
	static const char *const all[] = {"*"};
	struct publish_choice choice;
	publish_choice_init(&choice, patterns, 2, NULL);
	ck_assert(publish_choice_wants(&choice, "optimizer.pt", LARGE));
	ck_assert(publish_choice_wants(&choice, "global_step40/mp_rank_00_model_states.pt", 9));
	ck_assert(!publish_choice_wants(&choice, "a/optimizer.pt", 9));
	ck_assert(!publish_choice_wants(&choice, "scheduler.pt", 9));
	ck_assert(choice.is_used[0] && choice.is_used[1]);
	publish_choice_release(&choice);
	publish_choice_init(&choice, all, 1, NULL);
	for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++)
		ck_assert_msg(publish_choice_wants(&choice, FILES[i].path, FILES[i].size), "%s",
			FILES[i].path);
	publish_choice_release(&choice);
}
END_TEST

START_TEST(a_marker_stays_behind_without_a_word)
{
	static const char *const patterns[] = {"STABLE"};
	struct publish_choice choice;
	publish_choice_init(&choice, NULL, 0, "STABLE");
	ck_assert(!publish_choice_wants(&choice, "STABLE", 0));
	ck_assert(publish_choice_wants(&choice, "code/STABLE", 0));
	ck_assert_uint_eq(choice.left_count, 0);
	publish_choice_release(&choice);
	publish_choice_init(&choice, patterns, 1, "STABLE");
	ck_assert(publish_choice_wants(&choice, "config.json", 9));
	ck_assert(!choice.is_used[0]);
	ck_assert(publish_choice_wants(&choice, "STABLE", 0));
	publish_choice_release(&choice);
}
END_TEST

START_TEST(names_of_any_number_and_length_are_counted)
{
	struct publish_choice choice;
	char path[4000];
	publish_choice_init(&choice, NULL, 0, NULL);
	memset(path, 'x', sizeof path - 1);
	path[sizeof path - 1] = '\0';
	for (int i = 0; i < 100; i++)
		ck_assert(!publish_choice_wants(&choice, path, LARGE));
	ck_assert(publish_choice_wants(&choice, path, 9));
	ck_assert_uint_eq(choice.left_count, 100);
	ck_assert(!buffer_failed(&choice.left_names));
	publish_choice_release(&choice);
}
END_TEST

Suite *test_publish_choice_suite(void);
Suite *test_publish_choice_suite(void)
{
	Suite *const suite = suite_create("publish_choice");
	TCase *const tc = tcase_create("all");
	tcase_add_loop_test(tc, trainers_files_and_large_ones_stay_behind, 0,
		(int)(sizeof FILES / sizeof *FILES));
	tcase_add_loop_test(tc, what_is_not_a_shard_is_asked_for_again, 0,
		(int)(sizeof OTHERS / sizeof *OTHERS));
	tcase_add_test(tc, what_is_included_comes_whatever_it_is);
	tcase_add_test(tc, a_marker_stays_behind_without_a_word);
	tcase_add_test(tc, names_of_any_number_and_length_are_counted);
	suite_add_tcase(suite, tc);
	return suite;
}
