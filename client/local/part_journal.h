/* The parts of a partly downloaded file that are complete. The journal is a text file beside it,
 * with one line for each complete part and that part's checksum. So a download resumes after kill
 * -9, and even after a power cut: a part whose bytes do not match its line is downloaded again. An
 * identity (digest or ETag) binds the journal to the object; another identity, size or part size
 * starts again. The owner's lock guards it. */
#ifndef CLIENT_LOCAL_PART_JOURNAL_H
#define CLIENT_LOCAL_PART_JOURNAL_H

#include "base/file.h"

struct part_journal;

struct part_plan {
	uint64_t size;        /* of the file */
	uint64_t part_bytes;  /* over 0 */
	struct span identity; /* no white space; at most 256 bytes */
};
/* The number of parts: at least 1, even for an empty file. */
size_t part_plan_count(const struct part_plan *plan);
uint64_t part_plan_offset(const struct part_plan *plan, size_t part);
uint64_t part_plan_bytes(const struct part_plan *plan, size_t part);

/* Opens the journal `path`, or makes it, for `plan`, which is copied. Lines that are cut off or out
 * of range are dropped. */
struct part_journal *part_journal_open(const struct file_ops *files, const char *path,
	const struct part_plan *plan, struct error *err);
void part_journal_close(struct part_journal *journal); /* the file stays; NULL is fine */
bool part_journal_has(const struct part_journal *journal, size_t part);
size_t part_journal_count(const struct part_journal *journal); /* of complete parts */
/* Reads every recorded part from fd and forgets those whose bytes differ from their checksum.
 * `data_path` names the file in messages. */
int part_journal_verify(
	struct part_journal *journal, int fd, const char *data_path, struct error *err);
/* Records a complete part. */
int part_journal_add(
	struct part_journal *journal, size_t part, uint64_t checksum, struct error *err);
/* Forgets all parts. */
int part_journal_restart(struct part_journal *journal, struct error *err);

#endif
