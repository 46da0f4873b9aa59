/* Which files of a checkpoint folder publish makes part of a step. Trainers leave there what they
 * need to go on themselves, often larger than the weights: optimizer, scheduler and random states,
 * DeepSpeed's and FSDP's own shards. Workers need none of it. So files with the names that trainers
 * give these, and all beyond PUBLISH_CHOICE_MAX_BYTES that are no .safetensors, stay behind, unless
 * the caller includes them. */
#ifndef CLIENT_PUBLISH_PUBLISH_CHOICE_H
#define CLIENT_PUBLISH_PUBLISH_CHOICE_H

#include "base/buffer.h"
#include "client/terminal/output.h"
#include "weights/model/checkpoint.h"
#include "wire/step_message.h"

enum { PUBLISH_CHOICE_MAX_BYTES = 64 * 1024 * 1024 };

struct publish_choice {
	struct checkpoint_choice choice; /* what it is asked through */
	/* shell patterns of paths below the folder ('*' matches '/' too); borrowed */
	const char *const *include;
	size_t include_count;
	/* a file that only says that the folder is finished: left behind without a word; NULL:
	 * none */
	const char *marker;
	uint64_t left_bytes; /* of what was left behind so far */
	size_t left_count;
	struct buffer left_names; /* of these, as many as a message should have */
};

void publish_choice_init(struct publish_choice *choice, const char *const *include,
	size_t include_count, const char *marker);
void publish_choice_release(struct publish_choice *choice);
/* Whether the file is to be published; counts what is not. */
bool publish_choice_wants(struct publish_choice *choice, const char *path, uint64_t size);
/* Notes what was left behind, if anything was. */
void publish_choice_say(const struct publish_choice *choice, const struct output *output);

/* Notes which files of the step before are not among those of this one, so that workers lose them:
 * config and tokenizer, when one file is published where a folder was. Of weights and their index
 * nothing is said: the schema holds them together. */
void publish_choice_say_lost(const struct step_message *before, const struct step_file *files,
	size_t count, const struct output *output);

#endif
