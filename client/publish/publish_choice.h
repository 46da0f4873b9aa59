/* Which files of a checkpoint folder become part of a step. Trainers also leave there what they
 * need to resume, often larger than the weights: optimizer, scheduler and random states, and the
 * shards of DeepSpeed and FSDP, whole other checkpoints. Workers need none of it. So publish leaves
 * out files with the names that trainers give these, and files over PUBLISH_CHOICE_MAX_BYTES that
 * are not shards, unless the caller includes them. It also leaves out a .safetensors beside the
 * shards that their index does not name: mostly it is left from an older layout, and engines that
 * do not read the index would load it. */
#ifndef CLIENT_PUBLISH_PUBLISH_CHOICE_H
#define CLIENT_PUBLISH_PUBLISH_CHOICE_H

#include "base/buffer.h"
#include "client/work/output.h"
#include "weights/model/checkpoint.h"
#include "wire/step_message.h"

enum { PUBLISH_CHOICE_MAX_BYTES = 64 * 1024 * 1024 };

struct publish_choice {
	struct checkpoint_choice choice; /* hand this to checkpoint_open_chosen */
	/* shell patterns for paths below the folder ('*' also matches '/'); borrowed */
	const char *const *include;
	size_t include_count;
	bool *is_used; /* for each pattern, whether a file has matched it */
	/* a file that only says that the folder is finished: left out and not reported; NULL:
	 * none */
	const char *marker;
	uint64_t left_bytes; /* total size of the files left out so far */
	size_t left_count;
	struct buffer left_names; /* the first few of their names, for the message */
};

/* The choice refers to itself: it must not be moved afterwards. */
void publish_choice_init(struct publish_choice *choice, const char *const *include,
	size_t include_count, const char *marker);
void publish_choice_release(struct publish_choice *choice);
/* Whether the file is published. Counts the files that are not. A .safetensors that turns out not
 * to be a shard is asked for again with publish_choice_wants_other. */
bool publish_choice_wants(struct publish_choice *choice, const char *path, uint64_t size);
bool publish_choice_wants_other(struct publish_choice *choice, const char *path, uint64_t size);
/* Prints a note about the files that were left out, if there are any, and about each pattern that
 * matched no file. */
void publish_choice_say(const struct publish_choice *choice, const struct output *output);

/* Prints a note about the files of the step before that this step lacks, because workers lose them:
 * for example config and tokenizer, when one file is published where a folder was before. Weights
 * and their index are not mentioned: the schema guarantees them. */
void publish_choice_say_lost(const struct step_message *before, const struct step_file *files,
	size_t count, const struct output *output);

#endif
