/* Reads a database's write-ahead log, as a crash, a power cut or damage left it, before SQLite
 * does: SQLite takes the frames before the first bad one and silently forgets the rest. Here a
 * frame after a bad one can still prove itself, because its checksum continues the one that its
 * predecessor has stored. Damage of one flipped bit is mended. The format is SQLite's
 * (sqlite.org/fileformat2, "The Write-Ahead Log"). Internal to storage; one thread at a time. */
#ifndef STORAGE_DB_LOG_WALK_H
#define STORAGE_DB_LOG_WALK_H

#include "base/file.h"

enum log_state {
	LOG_EMPTY, /* no log, or nothing in it */
	LOG_SOUND, /* every transaction is whole; frames of one that never committed may follow */
	/* The last transaction is not whole. A power cut leaves a log so, and nobody was told of
	 * that transaction. The note beside the log (struct log_note) tells when damage is the only
	 * explanation. */
	LOG_TORN,
	LOG_DAMAGED /* committed transactions follow bad frames */
};

struct log_frame {
	uint32_t page;  /* as its header says; of a bad frame perhaps another */
	uint32_t pages; /* of a commit: the pages that the database then has; else 0 */
	bool is_good;
	bool is_of_log; /* carries the salts of the log */
};
struct log_mend { /* a byte that was one bit off */
	uint64_t offset;
	uint8_t byte;
};
enum { LOG_MENDS_MAX = 64 };

struct log_walk {
	enum log_state state;
	uint64_t salt;   /* names this log; in the byte order of the file */
	bool has_header; /* the header of the file is right, or was mended */
	uint32_t frames; /* in the list, without those of an earlier use of the file */
	struct log_frame *list;
	/* frames up to the last commit before the first bad frame: those that SQLite takes */
	uint32_t committed;
	uint32_t proven;   /* frames up to the last commit of all that prove themselves */
	uint32_t bad;      /* bad frames before that */
	size_t mend_count; /* of the frames that are good once these bytes are corrected */
	struct log_mend mends[LOG_MENDS_MAX];
};

/* A note kept beside the log: this number of frames of a log with this salt was committed. A salt
 * of 0 says nothing. */
struct log_note {
	uint64_t salt;
	uint32_t frames;
	bool is_exact; /* nobody was told of frames after these */
};
/* Reads the whole log and changes nothing. A log of the noted salt that lacks noted frames is
 * damaged. A log that has all frames of an exact note is not, whatever follows them. A log without
 * a header is taken for the noted one. Returns -1 when it cannot be read. */
int log_walk(
	const char *path, const struct log_note *note, struct log_walk *out, struct error *err);
void log_walk_release(struct log_walk *walk);
/* Writes the mended bytes into the file, and syncs it. */
int log_walk_mend(const struct log_walk *walk, const struct file_ops *files, const char *path,
	struct error *err);
/* Cuts off everything after the last commit, and syncs the file. SQLite would write over the first
 * of those frames only, and when a power cut later breaks off a transaction there, the frames after
 * it look committed. */
int log_walk_cut(const struct log_walk *walk, const struct file_ops *files, const char *path,
	struct error *err);
/* Copies all good frames up to `proven` into the database file, the newest of each page, and syncs
 * it. A page whose newest frame is bad gets content that does not match its checksum, if the frame
 * can be believed to belong to that page. *out_lost counts bad frames without a later good one for
 * their page. The log must have been mended; the caller removes it afterwards. May be repeated
 * after it was interrupted. unsupported: the database's pages have no checksums. damaged: page 1 is
 * lost, and nothing was changed. */
int log_walk_apply(const struct log_walk *walk, const struct file_ops *files, const char *log_path,
	const char *database_path, uint32_t *out_lost, struct error *err);

#endif
