/* The files that the folder of a checkpoint must hold, each with its size and digest, in byte order
 * of their paths. They were proven once, and can be proven again without a server. */
#ifndef CLIENT_LOCAL_PROVEN_FILES_H
#define CLIENT_LOCAL_PROVEN_FILES_H

#include "base/arena.h"
#include "base/format/json_node.h"
#include "weights/model/work_watch.h"
#include "wire/step_message.h"

struct proven_files {
	struct arena *arena; /* holds the files and their paths */
	struct step_file *files;
	size_t count; /* 0: the files are not known */
};

/* Copies the list, of up to STEP_OBJECTS_MAX files. */
void proven_files_copy(const struct step_file *files, size_t count, struct proven_files *out);
/* Reads the files that are in `folder` now, and takes them as proven. */
int proven_files_read(
	const char *folder, unsigned threads, struct proven_files *out, struct error *err);
void proven_files_release(struct proven_files *files); /* a zeroed one is fine */
uint64_t proven_files_bytes(const struct proven_files *files);

/* Fails with digest_mismatch, naming the file, unless every file is in the folder, byte for byte,
 * and no other file with tensors is. Other files in the folder are ignored. `watch` may be NULL. */
int proven_files_check(const struct proven_files *files, const char *folder, unsigned threads,
	struct work_watch *watch, struct error *err);

/* Prints and parses the array "files". Parsing a NULL array gives no files; a malformed array gives
 * false. */
void proven_files_print(const struct proven_files *files, struct json_writer *writer);
bool proven_files_parse(const struct json_node *array, struct proven_files *out);

#endif
