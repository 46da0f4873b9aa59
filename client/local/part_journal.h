/* Which parts of a half-downloaded file are there: a text file beside it, one line appended per
 * finished part with that part's checksum, so a download goes on after kill -9 and even after a
 * power cut (a part whose bytes do not match its line comes again). Bound to what is being fetched
 * by an identity (digest or ETag); another identity, size or part size starts afresh. Locked by its
 * owner. */
#ifndef CLIENT_LOCAL_PART_JOURNAL_H
#define CLIENT_LOCAL_PART_JOURNAL_H

#include "base/file.h"

struct part_journal;

struct part_plan {
	uint64_t size;
	uint64_t part_bytes;
	struct span identity; /* no white space; at most 256 bytes */
};
/* Parts of the plan: at least 1, also for an empty file. */
size_t part_plan_count(const struct part_plan *plan);
uint64_t part_plan_offset(const struct part_plan *plan, size_t part);
uint64_t part_plan_bytes(const struct part_plan *plan, size_t part);

/* Opens or makes `path` for `plan` (copied). Lines that are cut off or out of range are dropped. */
struct part_journal *part_journal_open(const struct file_ops *files, const char *path,
	const struct part_plan *plan, struct error *err);
void part_journal_close(struct part_journal *journal); /* the file stays; NULL is fine */
bool part_journal_has(const struct part_journal *journal, size_t part);
size_t part_journal_count(const struct part_journal *journal); /* of parts that are there */
/* Reads every recorded part from fd and forgets those whose bytes differ. `data_path` names the
 * file in messages. */
int part_journal_verify(
	struct part_journal *journal, int fd, const char *data_path, struct error *err);
int part_journal_add(
	struct part_journal *journal, size_t part, uint64_t checksum, struct error *err);
/* Forgets all parts. */
int part_journal_restart(struct part_journal *journal, struct error *err);

#endif
