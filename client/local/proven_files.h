/* The files that a checkpoint's folder has to hold, each with its size and digest, in byte order of
 * their paths: what was proven once and can be proven again, without a server. */
#ifndef CLIENT_LOCAL_PROVEN_FILES_H
#define CLIENT_LOCAL_PROVEN_FILES_H

#include "base/arena.h"
#include "base/format/json_node.h"
#include "weights/model/work_watch.h"
#include "wire/step_message.h"

struct proven_files {
	struct arena *arena; /* all of it */
	struct step_file *files;
	size_t count; /* 0: nothing is known of them */
};

void proven_files_copy(const struct step_file *files, size_t count, struct proven_files *out);
/* Takes what lies in `folder` now for right. */
int proven_files_read(
	const char *folder, unsigned threads, struct proven_files *out, struct error *err);
void proven_files_release(struct proven_files *files); /* a zeroed one is fine */
uint64_t proven_files_bytes(const struct proven_files *files);

/* digest_mismatch, naming the file, unless each is in the folder, byte for byte, and no other file
 * with tensors is. What else lies there is not asked about. `watch` may be NULL. */
int proven_files_check(const struct proven_files *files, const char *folder, unsigned threads,
	struct work_watch *watch, struct error *err);

/* The array "files". Parsing gives none where the array is absent, and false when there is one that
 * is malformed. */
void proven_files_print(const struct proven_files *files, struct json_writer *writer);
bool proven_files_parse(const struct json_node *array, struct proven_files *out);

#endif
