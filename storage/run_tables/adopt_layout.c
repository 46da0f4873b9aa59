/* There is one function per convention. It compares the part of a key below the run's prefix with
 * the key that such a trainer writes last, because a publish is complete only then. A number must
 * be spelled as its trainer prints it, with leading zeros up to a fixed width, so that each version
 * has one name. */
#include "storage/run_tables/adopt_layout.h"

#include <string.h>

enum { NUMBER_DIGITS = 6, SKYRL_DIGITS = 8, NUMBER_DIGITS_MAX = 18 };

static const char index_name[] = "model.safetensors.index.json";
static const char single_name[] = "model.safetensors";
static const char pointer_name[] = "latest";
static const char version_word[] = "weight_v";
static const char manifest_name[] = "manifest.json";
static const char skyrl_word[] = "delta-";
static const char pulse_word[] = "checkpoint-";
static const char ready_word[] = "READY-";

typedef bool match_function(struct span key, struct span rest, struct adopt_mark *out);

static struct span rest_from(struct span text, size_t at);
static bool starts_with(struct span text, const char *start);
static bool read_digits(struct span digits, size_t least, uint64_t *out);
static bool match_trl(struct span key, struct span rest, struct adopt_mark *out);
static bool read_number(struct span digits, uint64_t *out);
static bool match_slime(struct span key, struct span rest, struct adopt_mark *out);
static bool read_version(struct span name, uint64_t *out_version);
static bool match_stitch(struct span key, struct span rest, struct adopt_mark *out);
static bool match_modelexpress(struct span key, struct span rest, struct adopt_mark *out);
static bool is_folder_of_steps(struct span folder);
static bool match_skyrl(struct span key, struct span rest, struct adopt_mark *out);
static bool match_pulse(struct span key, struct span rest, struct adopt_mark *out);

static match_function *const match_by_convention[] = {
	[ADOPT_TRL] = match_trl,
	[ADOPT_SLIME] = match_slime,
	[ADOPT_STITCH] = match_stitch,
	[ADOPT_MODELEXPRESS] = match_modelexpress,
	[ADOPT_SKYRL] = match_skyrl,
	[ADOPT_PULSE] = match_pulse,
};

bool adopt_layout_number(struct span identity, uint64_t *out_number)
{
	static const struct {
		const char *word;
		size_t digits;
	} words[] = {{"step_", NUMBER_DIGITS}, {version_word, NUMBER_DIGITS},
		{skyrl_word, SKYRL_DIGITS}, {pulse_word, 1}};
	size_t start = identity.len;
	while (start > 0 && identity.data[start - 1] != '/')
		start--;
	const struct span name = rest_from(identity, start);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (starts_with(name, words[i].word))
			return read_digits(rest_from(name, strlen(words[i].word)), words[i].digits,
				out_number);
	return false;
}

bool adopt_layout_match(enum adopt_convention convention, struct span prefix, struct span key,
	struct adopt_mark *out)
{
	*out = (struct adopt_mark){0};
	if ((size_t)convention >= sizeof(match_by_convention) / sizeof(match_by_convention[0]) ||
		match_by_convention[convention] == NULL)
		return false;
	if (key.len <= prefix.len ||
		(prefix.len > 0 && memcmp(key.data, prefix.data, prefix.len) != 0))
		return false;
	const bool matches = match_by_convention[convention](key, rest_from(key, prefix.len), out);
	ASSERT(!matches || (out->objects.len > 0 && out->objects.len <= key.len));
	return matches;
}

const char *adopt_layout_folder(enum adopt_convention convention)
{
	return convention == ADOPT_TRL ? "deltas/" : convention == ADOPT_STITCH ? "updates/" : "";
}

bool adopt_layout_pointer(struct span content, struct span *out_run_id, uint64_t *out_version)
{
	size_t len = content.len;
	while (len > 0 &&
		(content.data[len - 1] == '\n' || content.data[len - 1] == '\r' ||
			content.data[len - 1] == ' '))
		len--;
	size_t slash = len;
	while (slash > 0 && content.data[slash - 1] != '/')
		slash--;
	if (slash < 2 || !read_version(span_slice(content, slash, len - slash), out_version))
		return false;
	*out_run_id = span_slice(content, 0, slash - 1);
	return true;
}

static struct span rest_from(struct span text, size_t at)
{
	ASSERT(at <= text.len);
	return span_slice(text, at, text.len - at);
}

static bool starts_with(struct span text, const char *start)
{
	return text.len >= strlen(start) && memcmp(text.data, start, strlen(start)) == 0;
}

/* Reads a number of at least `least` digits, without leading zeros beyond these: "000007". */
static bool read_digits(struct span digits, size_t least, uint64_t *out)
{
	uint64_t number = 0;
	ASSERT(least > 0 && least <= NUMBER_DIGITS_MAX);
	if (digits.len < least || digits.len > NUMBER_DIGITS_MAX ||
		(digits.len > least && digits.data[0] == '0'))
		return false;
	for (size_t i = 0; i < digits.len; i++) {
		if (digits.data[i] < '0' || digits.data[i] > '9')
			return false;
		number = number * 10 + (uint64_t)(digits.data[i] - '0');
	}
	*out = number;
	return true;
}

/* anchors/step_000001.safetensors or deltas/step_000002.safetensors: a publish is one object. */
static bool match_trl(struct span key, struct span rest, struct adopt_mark *out)
{
	static const char *const folders[] = {"anchors/step_", "deltas/step_"};
	static const char extension[] = ".safetensors";
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		const size_t before = strlen(folders[i]);
		if (!starts_with(rest, folders[i]) || rest.len < before + strlen(extension))
			continue;
		const struct span digits =
			span_slice(rest, before, rest.len - before - strlen(extension));
		if (!span_equal_text(rest_from(rest, before + digits.len), extension) ||
			!read_number(digits, &out->version))
			return false;
		out->identity =
			span_slice(rest, before - strlen("step_"), strlen("step_") + digits.len);
		out->objects = key;
		return true;
	}
	return false;
}

static bool read_number(struct span digits, uint64_t *out)
{
	return read_digits(digits, NUMBER_DIGITS, out);
}

/* weight_v000007/model.safetensors.index.json, which the trainer writes last. A full version that
 * is one file has only that file. */
static bool match_slime(struct span key, struct span rest, struct adopt_mark *out)
{
	const uint8_t *const slash = rest.len > 0 ? memchr(rest.data, '/', rest.len) : NULL;
	if (slash == NULL)
		return false;
	const struct span folder = span_slice(rest, 0, (size_t)(slash - rest.data));
	const struct span name = rest_from(rest, folder.len + 1);
	if (!read_version(folder, &out->version))
		return false;
	if (!span_equal_text(name, index_name) && !span_equal_text(name, single_name))
		return false;
	out->identity = folder;
	out->objects = span_slice(key, 0, key.len - name.len);
	return true;
}

/* "weight_v%06d" */
static bool read_version(struct span name, uint64_t *out_version)
{
	return starts_with(name, version_word) &&
		read_number(rest_from(name, strlen(version_word)), out_version);
}

static bool match_stitch(struct span key, struct span rest, struct adopt_mark *out)
{
	if (!span_equal_text(rest, pointer_name))
		return false;
	out->objects = key;
	out->is_pointer = true;
	return true;
}

/* FOLDER/model.safetensors.index.json, with any name of the folder. The index comes last. */
static bool match_modelexpress(struct span key, struct span rest, struct adopt_mark *out)
{
	const size_t tail = strlen(index_name) + 1;
	if (rest.len <= tail || rest.len - tail > ADOPT_IDENTITY_MAX_BYTES ||
		!span_ends_text(rest, index_name) || rest.data[rest.len - tail] != '/')
		return false;
	out->identity = span_slice(rest, 0, rest.len - tail);
	out->objects = span_slice(key, 0, key.len - strlen(index_name));
	return !is_folder_of_steps(out->identity);
}

/* Whether the objects, anchors, folds or views of a run lie there. Objects that are put into these
 * folders belong to a step already. */
static bool is_folder_of_steps(struct span folder)
{
	static const char *const names[] = {"anchors", "deltas", "folds", "steps", "updates"};
	struct span rest = folder;
	struct span name;
	while (span_split(&rest, '/', &name))
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (span_equal_text(name, names[i]))
				return true;
	return false;
}

/* delta-00000007/manifest.json. The manifest comes last. */
static bool match_skyrl(struct span key, struct span rest, struct adopt_mark *out)
{
	const size_t tail = strlen(manifest_name) + 1;
	if (rest.len <= tail || !span_ends_text(rest, manifest_name) ||
		rest.data[rest.len - tail] != '/')
		return false;
	out->identity = span_slice(rest, 0, rest.len - tail);
	out->objects = span_slice(key, 0, key.len - strlen(manifest_name));
	return starts_with(out->identity, skyrl_word) &&
		read_digits(
			rest_from(out->identity, strlen(skyrl_word)), SKYRL_DIGITS, &out->version);
}

/* checkpoint-120/READY-150. The marker comes last; its number says when it was written. */
static bool match_pulse(struct span key, struct span rest, struct adopt_mark *out)
{
	const uint8_t *const slash = rest.len > 0 ? memchr(rest.data, '/', rest.len) : NULL;
	uint64_t ready;
	if (slash == NULL)
		return false;
	out->identity = span_slice(rest, 0, (size_t)(slash - rest.data));
	const struct span name = rest_from(rest, out->identity.len + 1);
	out->objects = span_slice(key, 0, key.len - name.len);
	return starts_with(name, ready_word) &&
		read_digits(rest_from(name, strlen(ready_word)), 1, &ready) &&
		starts_with(out->identity, pulse_word) &&
		read_digits(rest_from(out->identity, strlen(pulse_word)), 1, &out->version);
}
