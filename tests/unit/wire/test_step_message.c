#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json_node.h"
#include "tests/unit/wire/message_text.h"
#include "wire/step_message.h"

static const char request[] =
	"{\"step\":5,\"epoch\":3,\"label\":\"1200\",\"digest\":\"" DIGEST_A
	"\",\"schema_digest\":\"" DIGEST_B "\","
	"\"base\":{\"step\":4,\"digest\":\"" DIGEST_B
	"\"},\"metadata\":{\"loss\":\"0.5\",\"a\":\"\\u00e4\"},"
	"\"tensors\":\"000102030405060708090a0b0c0d0e0ff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff\","
	"\"files\":" FILES_TEXT ",\"forms\":[" DELTA_TEXT "," ANCHOR_TEXT "]}";

static const char step_zero[] = "{\"step\":0,\"epoch\":1,\"digest\":\"" DIGEST_A
				"\",\"files\":" FILES_TEXT ",\"forms\":[" ANCHOR_TEXT "]}";

static struct arena *arena;
static struct step_message step;
static struct error err;

static void set_up(void)
{
	arena = arena_new(64 * 1024 * 1024);
	err = (struct error){0};
}

static void tear_down(void)
{
	arena_free(arena);
}

static void check_parses(const char *text)
{
	ck_assert_msg(step_message_parse(span_text(text), arena, &step, &err) == 0, "%s", err.text);
}

static void check_digest(const struct digest128 *digest, const char *text)
{
	char actual[DIGEST128_TEXT_BYTES];
	digest128_format(digest, actual);
	ck_assert_str_eq(actual, text);
}

START_TEST(every_field_is_read)
{
	check_parses(request);
	ck_assert(step.step == 5 && step.epoch == 3 && step.has_base && step.base_step == 4);
	check_digest(&step.digest, DIGEST_A);
	check_digest(&step.schema_digest, DIGEST_B);
	check_digest(&step.base_digest, DIGEST_B);
	ck_assert(span_equal_text(step.label, "1200"));
	ck_assert(span_equal_text(step.metadata, "{\"loss\":\"0.5\",\"a\":\"\xc3\xa4\"}"));
	ck_assert_uint_eq(step.tensor_digests.len, 32);
	ck_assert_uint_eq(step.tensor_digests.data[31], 0xff);
	ck_assert_uint_eq(step.file_count, 1);
	ck_assert(span_equal_text(step.files[0].path, "model.safetensors") &&
		step.files[0].size == 100);
	check_digest(&step.files[0].digest, DIGEST_A);
	ck_assert(step.created_ms == 0 && !step.collected);
}
END_TEST

START_TEST(forms_come_anchor_first)
{
	check_parses(request);
	ck_assert_uint_eq(step.form_count, 2);
	ck_assert_int_eq(step.forms[0].kind, STEP_ANCHOR);
	ck_assert_int_eq(step.forms[1].kind, STEP_DELTA);
	ck_assert(span_equal_text(step.forms[0].format, "full") &&
		span_equal_text(step.forms[1].format, "trl-gap"));
	ck_assert_ptr_eq(step_message_form(&step, STEP_DELTA), &step.forms[1]);
	const struct step_object *const object = &step.forms[1].objects[0];
	ck_assert(span_equal_text(object->name, "delta.safetensors") &&
		span_equal_text(object->key, "llm/steps/000005/delta.safetensors"));
	ck_assert(object->size == 7 && object->version.len == 0 && object->url.len == 0);
	check_parses(step_zero);
	ck_assert_ptr_null(step_message_form(&step, STEP_DELTA));
	ck_assert_str_eq(step_form_kind_name(STEP_ANCHOR), "anchor");
	ck_assert_str_eq(step_form_kind_name(STEP_DELTA), "delta");
}
END_TEST

START_TEST(step_zero_needs_little)
{
	const struct digest128 none = {{0}};
	check_parses(step_zero);
	ck_assert(!step.has_base && step.label.len == 0 && step.metadata.len == 0 &&
		step.tensor_digests.len == 0);
	ck_assert(digest128_equal(&step.schema_digest, &none));
}
END_TEST

/* Each row makes one change to `request` that must not matter. */
static const struct {
	const char *old, *with;
} good_rows[] = {
	{"\"step\":5", "\"unknown\":[{}],\"step\":5"},
	{"\"label\":\"1200\",", ""},
	{"\"label\":\"1200\"", "\"label\":null"},
	{"{\"loss\":\"0.5\",\"a\":\"\\u00e4\"}", "{}"},
	{"\"metadata\":{\"loss\":\"0.5\",\"a\":\"\\u00e4\"},", ""},
	{"[{\"path\":\"model.safetensors\",\"size\":100,\"digest\":\"" DIGEST_A "\"}]", "[]"},
	{"[" OBJECT_TEXT("delta.safetensors") "]", "[]"},
	{"\"path\":\"model.safetensors\"", "\"path\":\"a/..b/.c/d e/\xc3\xa4\""},
	{"\"size\":7",
		"\"version\":\"00112233445566778899aabbccddeeff\",\"url\":\"steps/5\",\"size\":7"},
	{"\"size\":7", "\"version\":\"\",\"size\":9223372036854775807"},
};

START_TEST(harmless_changes_are_taken)
{
	char *const text = message_text_replace(request, good_rows[_i].old, good_rows[_i].with);
	check_parses(text);
	free(text);
}
END_TEST

/* Each row puts one fault into `request` and gives a word that the message must hold. */
static const struct {
	const char *old, *with, *word;
} bad_rows[] = {
	{"\"step\":5,", "", "\"step\""},
	{"\"step\":5", "\"step\":5.0", "\"step\""},
	{"\"step\":5", "\"step\":-5", "\"step\""},
	{"\"step\":5", "\"step\":\"5\"", "\"step\""},
	{"\"step\":5", "\"step\":0", "base"},
	{"\"step\":5", "\"step\":5,\"step\":5", "JSON"},
	{"\"epoch\":3,", "", "\"epoch\""},
	{"\"label\":\"1200\"", "\"label\":1200", "\"label\""},
	{"\"label\":\"1200\"", "\"label\":\"a\\u0000b\"", "\"label\""},
	{"\"digest\":\"" DIGEST_A "\",\"schema", "\"schema", "\"digest\""},
	{DIGEST_A, "xxh3-128:00", "\"digest\""},
	{DIGEST_A, "000102030405060708090a0b0c0d0e0f", "\"digest\""},
	{"\"schema_digest\":\"" DIGEST_B "\"", "\"schema_digest\":5", "\"schema_digest\""},
	{"\"base\":{\"step\":4,\"digest\":\"" DIGEST_B "\"},", "", "\"base\""},
	{"\"base\":{\"step\":4,\"digest\":\"" DIGEST_B "\"}", "\"base\":null", "\"base\""},
	{"\"base\":{\"step\":4,\"digest\":\"" DIGEST_B "\"}", "\"base\":{\"step\":4}",
		"base: \"digest\""},
	{"\"base\":{\"step\":4,\"digest\":\"" DIGEST_B "\"}", "\"base\":[4]", "base"},
	{"\"0.5\"", "0.5", "loss"},
	{"\"0.5\"", "{}", "loss"},
	{"{\"loss\":\"0.5\",\"a\":\"\\u00e4\"}", "[\"loss\"]", "\"metadata\""},
	{"000102030405060708090a0b0c0d0e0ff0", "0102030405060708090a0b0c0d0e0ff0", "\"tensors\""},
	{"000102030405060708090a0b0c0d0e0ff0", "0g0102030405060708090a0b0c0d0e0ff0", "\"tensors\""},
	{"\"tensors\":\"0", "\"tensors\":5,\"x\":\"0", "\"tensors\""},
	{"\"files\":" FILES_TEXT ",", "", "\"files\""},
	{"\"files\":" FILES_TEXT, "\"files\":{}", "\"files\""},
	{"\"size\":100", "\"size\":1e2", "files[0]: \"size\""},
	{"\"size\":100,", "", "files[0]: \"size\""},
	{"{\"path\":\"model", "5,{\"path\":\"model", "files[0]: \"path\""},
	{"\"forms\":[", "\"forms\":[],\"x\":[", "\"forms\""},
	{"\"forms\":[", "\"formen\":[", "\"forms\""},
	{"\"forms\":[", "\"forms\":[" ANCHOR_TEXT ",", "\"forms\""},
	{"\"kind\":\"delta\"", "\"kind\":\"anchor\"", "two of the kind"},
	{"\"kind\":\"anchor\"", "\"kind\":\"delta\"", "two of the kind"},
	{"\"kind\":\"delta\"", "\"kind\":\"Delta\"", "\"kind\""},
	{"\"kind\":\"delta\",", "", "forms[0]: \"kind\""},
	{"\"format\":\"full\"", "\"format\":\"\"", "forms[1]: \"format\""},
	{"\"format\":\"full\"", "\"format\":\"Full\"", "\"format\""},
	{"\"format\":\"full\",", "", "\"format\""},
	{"[" OBJECT_TEXT("model.safetensors") "]", "[]", "no objects"},
	{"\"objects\":[" OBJECT_TEXT("delta.safetensors") "]", "\"x\":0", "\"objects\""},
	{"\"name\":\"delta.safetensors\",", "", "objects[0]: \"name\""},
	{"\"key\":\"llm/steps/000005/delta.safetensors\",", "", "\"key\""},
	{"\"key\":\"llm/steps/000005/delta.safetensors\"", "\"key\":\"\"", "\"key\""},
	{"\"key\":\"llm", "\"key\":\"\\u0000llm", "\"key\""},
	{"\"size\":7", "\"version\":\"00112233445566778899AABBCCDDEEFF\",\"size\":7",
		"\"version\""},
	{"\"size\":7", "\"version\":\"00\",\"size\":7", "\"version\""},
	{"\"size\":7", "\"url\":7,\"size\":7", "\"url\""},
	{"\"size\":7", "\"size\":18446744073709551615", "JSON"},
	{"\"epoch\":3", "\"epoch\":3,\"created\":\"yesterday\"", "\"created\""},
	{"\"epoch\":3", "\"epoch\":3,\"publish_ms\":2678400001", "\"publish_ms\""},
	{"\"epoch\":3", "\"epoch\":3,\"publish_ms\":-1", "\"publish_ms\""},
	{"\"epoch\":3", "\"epoch\":3,\"publish_ms\":\"5\"", "\"publish_ms\""},
	{"\"epoch\":3", "\"epoch\":3,\"changed\":5", "changed"},
	{"\"epoch\":3", "\"epoch\":3,\"changed\":{\"elements\":5}", "changed: \"of\""},
	{"\"epoch\":3", "\"epoch\":3,\"collected\":1", "\"collected\""},
	{"]}", "]", "JSON"},
};

START_TEST(each_fault_is_refused_by_name)
{
	char *const text = message_text_replace(request, bad_rows[_i].old, bad_rows[_i].with);
	ck_assert_msg(
		step_message_parse(span_text(text), arena, &step, &err) == -1, "taken: %s", text);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_msg(strstr(err.text, bad_rows[_i].word) != NULL, "\"%s\" does not name %s",
		err.text, bad_rows[_i].word);
	free(text);
}
END_TEST

START_TEST(step_zero_takes_no_delta)
{
	char *const text = message_text_replace(step_zero, ANCHOR_TEXT, DELTA_TEXT);
	ck_assert_int_eq(step_message_parse(span_text(text), arena, &step, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	free(text);
}
END_TEST

static const char *const other_values[] = {"[]", "5", "null", "\"text\"", "[{}]"};

START_TEST(other_values_are_no_manifest)
{
	ck_assert_int_eq(step_message_parse(span_text(other_values[_i]), arena, &step, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

static const char *const unsafe_names[] = {
	"",
	"/",
	"/etc/passwd",
	"..",
	"../x",
	"a/../b",
	"a/..",
	".",
	"./a",
	"a/./b",
	"a//b",
	"a/",
	"\\u0000",
	"a\\u0000b",
	"a\\nb",
	"a\\u007f",
	"a\\u001b[2J",
};

START_TEST(unsafe_names_are_refused_everywhere)
{
	static const char *const places[] = {
		"\"path\":\"model.safetensors\"", "\"name\":\"delta.safetensors\""};
	for (size_t i = 0; i < 2; i++) {
		char name[100];
		snprintf(name, sizeof(name), "%.7s\"%s\"", places[i], unsafe_names[_i]);
		char *const text = message_text_replace(request, places[i], name);
		ck_assert_msg(step_message_parse(span_text(text), arena, &step, &err) == -1,
			"taken: %s", text);
		ck_assert_int_eq(err.kind, ERROR_INVALID);
		free(text);
	}
}
END_TEST

static void check_length(
	const char *old, const char *form, size_t len, int result, enum error_kind kind)
{
	char *const filler = calloc(1, len + 1);
	memset(filler, 'x', len);
	char *const with = message_text_replace(form, "LONG", filler);
	char *const text = message_text_replace(request, old, with);
	err = (struct error){0};
	ck_assert_msg(step_message_parse(span_text(text), arena, &step, &err) == result,
		"%s of %zu: %s", old, len, err.text);
	ck_assert_int_eq(err.kind, kind);
	free(text);
	free(with);
	free(filler);
}

START_TEST(lengths_end_at_their_caps)
{
	check_length(
		"\"label\":\"1200\"", "\"label\":\"LONG\"", STEP_LABEL_MAX_BYTES, 0, ERROR_NONE);
	check_length("\"label\":\"1200\"", "\"label\":\"LONG\"", STEP_LABEL_MAX_BYTES + 1, -1,
		ERROR_INVALID);
	check_length("\"path\":\"model.safetensors\"", "\"path\":\"LONG\"", STEP_NAME_MAX_BYTES, 0,
		ERROR_NONE);
	check_length("\"path\":\"model.safetensors\"", "\"path\":\"LONG\"", STEP_NAME_MAX_BYTES + 1,
		-1, ERROR_INVALID);
	check_length("\"key\":\"llm/steps/000005/delta.safetensors\"", "\"key\":\"LONG\"",
		STEP_KEY_MAX_BYTES, 0, ERROR_NONE);
	check_length("\"key\":\"llm/steps/000005/delta.safetensors\"", "\"key\":\"LONG\"",
		STEP_KEY_MAX_BYTES + 1, -1, ERROR_INVALID);
	check_length("\"format\":\"full\"", "\"format\":\"LONG\"", STEP_FORMAT_MAX_BYTES + 1, -1,
		ERROR_INVALID);
	check_length("{\"loss\":\"0.5\",\"a\":\"\\u00e4\"}", "{\"n\":\"LONG\"}",
		STEP_METADATA_MAX_BYTES - 8, 0, ERROR_NONE);
	check_length("{\"loss\":\"0.5\",\"a\":\"\\u00e4\"}", "{\"n\":\"LONG\"}",
		STEP_METADATA_MAX_BYTES - 7, -1, ERROR_TOO_LARGE);
	check_length("\"step\":5", "\"step\":5,\"x\":\"LONG\"", STEP_MESSAGE_MAX_BYTES, -1,
		ERROR_TOO_LARGE);
}
END_TEST

/* `count` files with names in falling order. */
static char *with_files(size_t count)
{
	struct buffer list;
	buffer_init(&list, STEP_MESSAGE_MAX_BYTES);
	for (size_t i = count; i > 0; i--)
		buffer_format(&list,
			"%c{\"path\":\"f%05zu\",\"size\":1,\"digest\":\"" DIGEST_A "\"}",
			i < count ? ',' : '[', i);
	buffer_add_byte(&list, ']');
	char *const text = message_text_replace(request, FILES_TEXT, buffer_text(&list));
	buffer_release(&list);
	return text;
}

START_TEST(files_are_counted_and_sorted)
{
	char *text = with_files(STEP_OBJECTS_MAX);
	check_parses(text);
	ck_assert_uint_eq(step.file_count, STEP_OBJECTS_MAX);
	for (size_t i = 1; i < step.file_count; i++)
		ck_assert_int_lt(span_compare(step.files[i - 1].path, step.files[i].path), 0);
	free(text);
	text = with_files(STEP_OBJECTS_MAX + 1);
	ck_assert_int_eq(step_message_parse(span_text(text), arena, &step, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	free(text);
}
END_TEST

START_TEST(repeated_names_are_refused)
{
	static const char *const rows[][2] = {
		{FILES_TEXT,
			"[{\"path\":\"a\",\"size\":1,\"digest\":\"" DIGEST_A
			"\"},{\"path\":\"a\",\"size\":2,\"digest\":\"" DIGEST_A "\"}]"},
		{"[" OBJECT_TEXT("delta.safetensors"),
			"[" OBJECT_TEXT("delta.safetensors") "," OBJECT_TEXT("a") "," OBJECT_TEXT(
				"delta.safetensors")},
	};
	for (size_t i = 0; i < 2; i++) {
		char *const text = message_text_replace(request, rows[i][0], rows[i][1]);
		ck_assert_int_eq(step_message_parse(span_text(text), arena, &step, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_INVALID);
		ck_assert_ptr_nonnull(strstr(err.text, "twice"));
		free(text);
	}
}
END_TEST

START_TEST(full_arena_is_told_at_any_point)
{
	int refused = 0;
	for (size_t cap = 0; cap < 4096; cap += 16) {
		struct arena *const small = arena_new(cap);
		err = (struct error){0};
		if (step_message_parse(span_text(request), small, &step, &err) != 0) {
			ck_assert_int_eq(err.kind, ERROR_TOO_LARGE);
			refused++;
		}
		arena_free(small);
	}
	ck_assert(refused > 10 && refused < 256);
}
END_TEST

/* The parser refuses the text wherever it is cut, and does not crash. */
START_TEST(cut_texts_are_refused)
{
	for (size_t len = 0; len < sizeof(request) - 1; len++) {
		ck_assert_int_eq(step_message_parse(span_of(request, len), arena, &step, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_INVALID);
	}
}
END_TEST

static const char manifest[] =
	"{\"run\":\"models/llm\",\"step\":5,\"epoch\":3,\"label\":\"1200\",\"digest\":\"" DIGEST_A
	"\",\"schema_digest\":\"" DIGEST_B "\",\"base\":{\"step\":4,\"digest\":\"" DIGEST_B
	"\"},\"created\":\"2026-01-02T03:04:05.000Z\",\"tensors\":\"000102030405060708090a0b0c0d0e0f\","
	"\"metadata\":{\"a\":\"b\"},\"files\":" FILES_TEXT
	",\"forms\":[{\"kind\":\"anchor\",\"format\":\"full\",\"bytes\":9,\"objects\":["
	"{\"name\":\"a\",\"key\":\"k\\\"\",\"version\":\"00112233445566778899aabbccddeeff\",\"size\":4,\"digest\":\"" DIGEST_A
	"\",\"url\":\"steps/5/objects/anchor/a\"},{\"name\":\"b\",\"key\":\"k2\",\"size\":5,\"digest\":\"" DIGEST_A
	"\"}]},"
	"{\"kind\":\"delta\",\"format\":\"trl-gap\",\"bytes\":0,\"objects\":[]}]}";

START_TEST(what_is_printed_is_what_was_parsed)
{
	struct buffer out;
	buffer_init(&out, STEP_MESSAGE_MAX_BYTES);
	check_parses(manifest);
	ck_assert(!step.collected && step.created_ms == INT64_C(1767323045000));
	step_message_print(&step, "models/llm", true, &out);
	ck_assert_str_eq(buffer_text(&out), manifest);
	buffer_release(&out);
}
END_TEST

START_TEST(request_is_printed_without_what_is_the_servers)
{
	struct buffer out;
	buffer_init(&out, STEP_MESSAGE_MAX_BYTES);
	check_parses(step_zero);
	step.tensor_digests = span_of("0123456789abcdef", 16);
	step_message_print(&step, NULL, false, &out);
	ck_assert_str_eq(buffer_text(&out),
		"{\"step\":0,\"epoch\":1,\"label\":\"\",\"digest\":\"" DIGEST_A
		"\",\"base\":null,\"metadata\":{},\"files\":" FILES_TEXT
		",\"forms\":[{\"kind\":\"anchor\",\"format\":\"full\",\"bytes\":7,\"objects\":[" OBJECT_TEXT(
			"model.safetensors") "]}]}");
	ck_assert_int_eq(step_message_parse(buffer_span(&out), arena, &step, &err), 0);
	buffer_release(&out);
}
END_TEST

START_TEST(too_small_a_buffer_is_told)
{
	struct buffer out;
	buffer_init(&out, 500);
	check_parses(manifest);
	step_message_print(&step, "models/llm", true, &out);
	ck_assert(buffer_failed(&out));
	buffer_release(&out);
}
END_TEST

START_TEST(collected_steps_are_bare)
{
	static const char bare[] = "{\"step\":5,\"epoch\":0,\"label\":\"\",\"digest\":\"" DIGEST_A
				   "\",\"base\":null,\"created\":\"2026-01-02T03:04:05.000Z\","
				   "\"metadata\":{},\"files\":[],\"forms\":[],\"collected\":true}";
	struct buffer out;
	buffer_init(&out, 10000);
	check_parses(bare);
	ck_assert(step.collected && step.form_count == 0 && !step.has_base);
	step_message_print(&step, NULL, true, &out);
	ck_assert_str_eq(buffer_text(&out), bare);
	buffer_release(&out);
}
END_TEST

/* Nobody can publish a step that claims to be collected: this parser refuses it with forms, and
 * without forms there is nothing to publish. */
START_TEST(collected_steps_have_no_forms)
{
	char *const text =
		message_text_replace(request, "\"step\":5", "\"collected\":true,\"step\":5");
	ck_assert_int_eq(step_message_parse(span_text(text), arena, &step, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	free(text);
}
END_TEST

START_TEST(base_is_the_step_before)
{
	static const char *const rows[][2] = {
		{"\"step\":5", "\"step\":6"},
		{"\"base\":{\"step\":4", "\"base\":{\"step\":3"},
		{"\"base\":{\"step\":4", "\"base\":{\"step\":5"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *const text = message_text_replace(request, rows[i][0], rows[i][1]);
		ck_assert_int_eq(step_message_parse(span_text(text), arena, &step, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_BASE_MISSING);
		free(text);
	}
}
END_TEST

START_TEST(form_bytes_are_the_sum_and_never_wrap)
{
	struct step_object objects[3] = {{.size = 1}, {.size = 2}, {.size = 3}};
	const struct step_form form = {.objects = objects, .object_count = 3};
	ck_assert(step_form_bytes(&form) == 6);
	objects[0].size = UINT64_MAX;
	objects[1].size = UINT64_MAX;
	ck_assert(step_form_bytes(&form) == INT64_MAX);
}
END_TEST

START_TEST(counts_and_the_time_of_a_publish_go_both_ways)
{
	struct buffer text;
	buffer_init(&text, 64 * 1024);
	check_parses(request);
	ck_assert(!step.has_changed && !step.has_publish_ms);
	const struct digest128 content = step_message_content_digest(&step);
	step.has_changed = true;
	step.changed_of = 7;
	step.has_publish_ms = true;
	step.publish_ms = STEP_PUBLISH_MAX_MS;
	step_message_print(&step, NULL, true, &text);
	check_parses(buffer_text(&text));
	ck_assert(step.has_changed && step.changed_elements == 0 && step.changed_of == 7);
	ck_assert(step.has_publish_ms && step.publish_ms == STEP_PUBLISH_MAX_MS);
	const struct digest128 again = step_message_content_digest(&step);
	ck_assert(digest128_equal(&content, &again)); /* a republish need not repeat them */
	buffer_release(&text);
}
END_TEST

START_TEST(proof_goes_both_ways)
{
	static const enum step_proof proofs[] = {
		STEP_PROOF_NONE, STEP_PROOF_PENDING, STEP_PROOF_OK, STEP_PROOF_FAILED};
	for (size_t i = 0; i < sizeof(proofs) / sizeof(proofs[0]); i++) {
		struct buffer text;
		buffer_init(&text, 64 * 1024);
		check_parses(request);
		ck_assert(step.verified == STEP_PROOF_NONE && step.verify_error.len == 0 &&
			!step.anchor_due);
		const struct digest128 content = step_message_content_digest(&step);
		step.verified = proofs[i];
		step.verify_error = span_text(proofs[i] == STEP_PROOF_FAILED ? "not so" : "");
		step.anchor_due = proofs[i] == STEP_PROOF_FAILED;
		step_message_print(&step, NULL, true, &text);
		check_parses(buffer_text(&text));
		ck_assert(step.verified == proofs[i] &&
			step.anchor_due == (proofs[i] == STEP_PROOF_FAILED));
		ck_assert(span_equal_text(
			step.verify_error, proofs[i] == STEP_PROOF_FAILED ? "not so" : ""));
		const struct digest128 again = step_message_content_digest(&step);
		ck_assert(digest128_equal(&content, &again)); /* a republish need not know it */
		buffer_release(&text);
	}
	char *const odd =
		message_text_replace(request, "\"step\":5", "\"step\":5,\"verified\":\"maybe\"");
	ck_assert_int_eq(step_message_parse(span_text(odd), arena, &step, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	free(odd);
}
END_TEST

Suite *test_step_message_suite(void);
Suite *test_step_message_suite(void)
{
	Suite *const suite = suite_create("step_message");
	TCase *const tc = tcase_create("all");
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, every_field_is_read);
	tcase_add_test(tc, forms_come_anchor_first);
	tcase_add_test(tc, step_zero_needs_little);
	tcase_add_loop_test(
		tc, harmless_changes_are_taken, 0, sizeof(good_rows) / sizeof(good_rows[0]));
	tcase_add_loop_test(
		tc, each_fault_is_refused_by_name, 0, sizeof(bad_rows) / sizeof(bad_rows[0]));
	tcase_add_test(tc, step_zero_takes_no_delta);
	tcase_add_loop_test(tc, other_values_are_no_manifest, 0,
		sizeof(other_values) / sizeof(other_values[0]));
	tcase_add_loop_test(tc, unsafe_names_are_refused_everywhere, 0,
		sizeof(unsafe_names) / sizeof(unsafe_names[0]));
	tcase_add_test(tc, lengths_end_at_their_caps);
	tcase_add_test(tc, files_are_counted_and_sorted);
	tcase_add_test(tc, repeated_names_are_refused);
	tcase_add_test(tc, full_arena_is_told_at_any_point);
	tcase_add_test(tc, cut_texts_are_refused);
	tcase_add_test(tc, what_is_printed_is_what_was_parsed);
	tcase_add_test(tc, request_is_printed_without_what_is_the_servers);
	tcase_add_test(tc, too_small_a_buffer_is_told);
	tcase_add_test(tc, collected_steps_are_bare);
	tcase_add_test(tc, collected_steps_have_no_forms);
	tcase_add_test(tc, base_is_the_step_before);
	tcase_add_test(tc, form_bytes_are_the_sum_and_never_wrap);
	tcase_add_test(tc, counts_and_the_time_of_a_publish_go_both_ways);
	tcase_add_test(tc, proof_goes_both_ways);
	suite_add_tcase(suite, tc);
	return suite;
}
