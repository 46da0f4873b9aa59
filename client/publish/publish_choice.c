/* A file is judged by five questions, and the first that applies decides: the caller includes it
 * (published); it is the marker (left out); it is large and not a shard (left out); a part of its
 * path has a trainer's name (left out); it is a .safetensors beside the shards and not one of them
 * (left out). Every other file is published, so that a config or tokenizer of any name, and a small
 * module that has a folder of its own, reach the workers. */
#include "client/publish/publish_choice.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/quantity.h"
#include "weights/model/shard_rule.h"

enum { NAMES_SHOWN = 4, NAMES_MAX_BYTES = 64 * 1024 };

/* Names of files, and of the folders that contain them. */
static const char *const trainer_names[] = {
	/* transformers, accelerate */
	"optimizer*", "scheduler.pt", "scheduler.bin", "scaler.pt", "sampler*.bin", "rng_state*",
	"random_states_*", "training_args.bin", "checkpoint-[0-9]*", "global_step*",
	"*zero_pp_rank_*", "mp_rank_*",    /* DeepSpeed */
	"*.distcp", "pytorch_model_fsdp*", /* torch */
};

static bool publish_choice_wants_file(void *chooser, const char *path, uint64_t size);
static bool publish_choice_wants_other_file(void *chooser, const char *path, uint64_t size);
static bool is_included(struct publish_choice *choice, const char *path);
static bool leave(struct publish_choice *choice, const char *path, uint64_t size);
static bool is_trainer_file(const char *path);
static bool has_trainer_name(const char *name);
static bool holds_weights(struct span path);

void publish_choice_init(struct publish_choice *choice, const char *const *include,
	size_t include_count, const char *marker)
{
	ASSERT(include != NULL || include_count == 0);
	*choice = (struct publish_choice){
		.choice = {publish_choice_wants_file, choice, publish_choice_wants_other_file},
		.include = include,
		.include_count = include_count,
		.is_used = memory_new_array(include_count + 1, sizeof(bool)),
		.marker = marker};
	buffer_init(&choice->left_names, NAMES_MAX_BYTES);
}

void publish_choice_release(struct publish_choice *choice)
{
	free(choice->is_used);
	buffer_release(&choice->left_names);
}

bool publish_choice_wants(struct publish_choice *choice, const char *path, uint64_t size)
{
	ASSERT(choice->choice.chooser == choice);
	const bool is_large =
		size > PUBLISH_CHOICE_MAX_BYTES && !span_ends_text(span_text(path), ".safetensors");
	if (is_included(choice, path))
		return true;
	if (choice->marker != NULL && strcmp(path, choice->marker) == 0)
		return false;
	return (!is_large && !is_trainer_file(path)) || leave(choice, path, size);
}

bool publish_choice_wants_other(struct publish_choice *choice, const char *path, uint64_t size)
{
	ASSERT(choice->choice.chooser == choice);
	const bool is_needed =
		size <= PUBLISH_CHOICE_MAX_BYTES && !shard_rule_is_top(span_text(path));
	return is_included(choice, path) || is_needed || leave(choice, path, size);
}

void publish_choice_say_lost(const struct step_message *before, const struct step_file *files,
	size_t count, const struct output *output)
{
	struct buffer names;
	size_t lost = 0;
	buffer_init(&names, NAMES_MAX_BYTES);
	for (size_t i = 0; i < before->file_count; i++) {
		const struct span path = before->files[i].path;
		if (holds_weights(path) || step_file_find(files, count, path) != NULL)
			continue;
		if (lost++ < NAMES_SHOWN)
			buffer_format(&names, "%s%.*s", lost > 1 ? ", " : "", (int)path.len,
				(const char *)path.data);
	}
	if (lost > 0)
		output_note(output,
			"this step lacks %zu file%s of step %" PRIu64
			", so workers lose %s (%s%s); to keep %s, publish a folder that has %s",
			lost, lost == 1 ? "" : "s", before->step, lost == 1 ? "it" : "them",
			buffer_text(&names), lost > NAMES_SHOWN ? ", ..." : "",
			lost == 1 ? "it" : "them", lost == 1 ? "it" : "them");
	buffer_release(&names);
}

void publish_choice_say(const struct publish_choice *choice, const struct output *output)
{
	const struct span names = buffer_span(&choice->left_names);
	char size[QUANTITY_TEXT_BYTES];
	for (size_t i = 0; i < choice->include_count; i++)
		if (!choice->is_used[i])
			output_note(output, "--include %s matches no file of the checkpoint",
				choice->include[i]);
	if (choice->left_count == 0)
		return;
	quantity_format(choice->left_bytes, size);
	output_note(output,
		"left out %zu file%s that workers do not need, %s (%.*s%s); --include PATTERN "
		"publishes them too",
		choice->left_count, choice->left_count == 1 ? "" : "s", size, (int)names.len,
		(const char *)names.data, choice->left_count > NAMES_SHOWN ? ", ..." : "");
}

static bool publish_choice_wants_file(void *chooser, const char *path, uint64_t size)
{
	return publish_choice_wants(chooser, path, size);
}

static bool publish_choice_wants_other_file(void *chooser, const char *path, uint64_t size)
{
	return publish_choice_wants_other(chooser, path, size);
}

static bool is_included(struct publish_choice *choice, const char *path)
{
	bool found = false;
	for (size_t i = 0; i < choice->include_count; i++)
		if (fnmatch(choice->include[i], path, 0) == 0)
			found = choice->is_used[i] = true;
	return found;
}

/* Counts a file that is left out. */
static bool leave(struct publish_choice *choice, const char *path, uint64_t size)
{
	if (choice->left_count < NAMES_SHOWN)
		buffer_format(
			&choice->left_names, "%s%s", choice->left_count > 0 ? ", " : "", path);
	choice->left_count++;
	choice->left_bytes += size;
	return false;
}

/* Whether a trainer gave this name to the file or to a folder on its path. */
static bool is_trainer_file(const char *path)
{
	struct span rest = span_text(path);
	struct span name;
	while (span_split(&rest, '/', &name)) {
		char text[NAME_MAX + 1];
		if (name.len > NAME_MAX)
			continue;
		memcpy(text, name.data, name.len);
		text[name.len] = '\0';
		if (has_trainer_name(text))
			return true;
	}
	return false;
}

static bool has_trainer_name(const char *name)
{
	for (size_t i = 0; i < sizeof(trainer_names) / sizeof(*trainer_names); i++)
		if (fnmatch(trainer_names[i], name, 0) == 0)
			return true;
	return false;
}

static bool holds_weights(struct span path)
{
	return shard_rule_is_top(path) || shard_rule_is_index(path);
}
