/* A database's write-ahead log as a crash, a power cut or damage left it, looked at before SQLite
 * does: SQLite takes what stands before the first bad frame and forgets the rest, without a word.
 * Here a frame behind a bad one still proves itself, because its checksum begins with the one that
 * its predecessor has stored. What one flipped bit explains is mended. The format is SQLite's
 * (sqlite.org/fileformat2, "The Write-Ahead Log"). Internal to storage; one thread at a time. */
#ifndef STORAGE_DB_LOG_WALK_H
#define STORAGE_DB_LOG_WALK_H

#include "base/file.h"

enum log_state {
	LOG_EMPTY, /* no log, or nothing in it */
	LOG_SOUND, /* every transaction is there; a last one that never committed may follow */
	/* the last transaction is not whole: a power cut leaves it so, and nobody was told of
	 * it. If nothing but damage explains it, what is told beside the log knows */
	LOG_TORN,
	LOG_DAMAGED /* transactions stand behind frames that are bad: they were committed */
};

struct log_frame {
	uint32_t page;  /* as its header says: of a bad one perhaps another */
	uint32_t pages; /* of a commit: how many pages the database has then; else 0 */
	bool is_good;
	bool is_of_log; /* carries the log's salts */
};
struct log_mend { /* a byte that was one bit off */
	uint64_t offset;
	uint8_t byte;
};
enum { LOG_MENDS_MAX = 64 };

struct log_walk {
	enum log_state state;
	uint64_t salt;   /* names this log; in the byte order of the file */
	bool has_header; /* the file's header is right, or was mended */
	uint32_t frames; /* in the list; those of an earlier use of the file are not */
	struct log_frame *list;
	/* frames up to the last commit before the first bad one: what SQLite takes */
	uint32_t committed;
	uint32_t proven;   /* frames up to the last commit of all that prove themselves */
	uint32_t bad;      /* bad frames before that */
	size_t mend_count; /* of the frames that are good once these bytes are put right */
	struct log_mend mends[LOG_MENDS_MAX];
};

/* What was noted beside the log: so many frames of a log of this salt were committed. A salt of 0
 * says nothing. */
struct log_note {
	uint64_t salt;
	uint32_t frames;
	bool is_exact; /* nobody was told of frames behind these */
};
/* Reads the whole log; changes nothing. A log of the noted salt that lacks noted frames is damaged;
 * one that has all frames of an exact note is not, whatever follows them. One without a header is
 * looked at as the noted one. -1 when it cannot be read. */
int log_walk(
	const char *path, const struct log_note *note, struct log_walk *out, struct error *err);
void log_walk_release(struct log_walk *walk);
/* Puts the mended bytes into the file, and syncs it. */
int log_walk_mend(const struct log_walk *walk, const struct file_ops *files, const char *path,
	struct error *err);
/* Cuts off what follows the last commit, and syncs the file. SQLite would write over the first of
 * those frames only: what stays behind a transaction that a power cut breaks off later looks like a
 * committed one. */
int log_walk_cut(const struct log_walk *walk, const struct file_ops *files, const char *path,
	struct error *err);
/* Brings all good frames up to `proven` into the database file, the newest of each page, and syncs
 * it. A page whose newest frame is bad becomes one that does not match its checksum, where the
 * frame can be believed to be that page's; *out_lost counts bad frames that no good one follows for
 * their page. The log must have been mended, and is for the caller to take away then. May be
 * repeated after it was cut off. unsupported: the database's pages have no checksums; damaged: page
 * 1 is lost, and nothing was changed. */
int log_walk_apply(const struct log_walk *walk, const struct file_ops *files, const char *log_path,
	const char *database_path, uint32_t *out_lost, struct error *err);

#endif
