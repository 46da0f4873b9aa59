/* The checksums form a chain: a frame's checksum covers the first 8 bytes of its header and its
 * page, and begins with the checksum of the frame before; the first one begins with that of the
 * log's header. So if the frame before is known to be true, a frame is proven forwards. With the
 * checksum that the frame before has stored, true or not, a frame proves itself. The two 32-bit
 * sums are taken over words in the byte order that the log's magic names. Frames of an earlier use
 * of the file follow the present ones, with other salts. */
#include "storage/db/log_walk.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "storage/db/page_sum.h"

enum {
	HEADER_BYTES = 32,
	FRAME_HEADER_BYTES = 24,
	FRAME_BYTES = FRAME_HEADER_BYTES + PAGE_BYTES,
	SUMMED_BYTES = 8, /* at the begin of a frame's header */
	SALT_AT = 8,      /* in a frame's header */
	SUM_AT = 16,      /* in a frame's header */
	HEADER_SALT_AT = 16,
	HEADER_SUM_AT = 24,
	RESERVED_AT = 20 /* in the first page: whether pages carry checksums */
};
static const uint32_t MAGIC = 0x377f0682; /* the last bit is set when words are big-endian */

struct log_sum {
	uint32_t words[2];
};
struct log_reader {
	int fd;
	const char *path;
	struct log_walk *walk;
	const struct log_note *note;
	size_t capacity; /* of walk->list */
	bool big_endian;
	uint8_t salt[8];
	struct log_sum truth;  /* the checksum of the frame before, valid while is_true */
	struct log_sum stored; /* the checksum that the frame before has stored */
	bool is_true;
	uint64_t offset; /* of the frame (or the header) in `bytes` */
	uint8_t bytes[FRAME_BYTES];
	bool has_next; /* the frame after it, which proves what its checksum was */
	uint8_t next[FRAME_BYTES];
};

/* Ranges of `bytes` in which one bit may be wrong. */
struct bit_search {
	size_t from;
	size_t to;
};
typedef bool fits_fn(const struct log_reader *reader);

struct log_application {
	const struct log_walk *walk;
	const struct file_ops *files;
	const char *log_path;
	const char *path;
	int log;
	int database;
	uint32_t pages;   /* of the database afterwards */
	uint32_t *newest; /* index: page; its newest frame, counted from 1; 0: none */
	uint32_t lost;
};

static int walk_file(struct log_reader *reader, struct error *err);
static int read_at(const struct log_reader *reader, uint8_t *into, size_t len, uint64_t offset,
	struct error *err);
static void take_header(struct log_reader *reader);
static bool log_walk_header_fits(const struct log_reader *reader);
static uint32_t big_endian_32(const uint8_t *from);
static bool sum_equal(struct log_sum a, struct log_sum b);
static struct log_sum header_sum(const struct log_reader *reader);
static struct log_sum sum_over(
	bool big_endian, struct log_sum sum, const uint8_t *bytes, size_t len);
static struct log_sum stored_sum(const uint8_t *from);
static bool mend_header(struct log_reader *reader);
static bool next_follows(const struct log_reader *reader, struct log_sum before);
static struct log_sum frame_sum(bool big_endian, const uint8_t *frame, struct log_sum before);
static bool mend_sum(struct log_reader *reader, size_t at, struct log_sum sum);
static bool mend_bytes(struct log_reader *reader, size_t at, const uint8_t *right, size_t len);
static size_t count_others(const uint8_t *bytes, const uint8_t *right, size_t len);
static void note_mend(struct log_walk *walk, uint64_t offset, uint8_t byte);
static unsigned mend_bit(
	struct log_reader *reader, const struct bit_search *parts, size_t count, fits_fn *fits);
static void flip_bit(struct log_reader *reader, size_t bit);
static void guess_salt(const struct log_reader *reader, uint8_t out[8]);
static int walk_frames(struct log_reader *reader, struct error *err);
static int advance(struct log_reader *reader, uint64_t offset, struct error *err);
static bool judge_frame(struct log_reader *reader);
static bool frame_fits(const struct log_reader *reader, struct log_sum before);
static int salt_distance(const struct log_reader *reader);
static bool mend_frame(struct log_reader *reader);
static bool log_walk_follows_truth(const struct log_reader *reader);
static void add_frame(struct log_reader *reader, bool is_good);
static void cut_tail(struct log_walk *walk);
static void judge(struct log_walk *walk);
static uint32_t first_bad(const struct log_walk *walk);
static uint32_t last_commit(const struct log_walk *walk, uint32_t end);
static void set_damaged(struct log_walk *walk, uint32_t end);
static void count_bad(struct log_walk *walk);
static bool is_proven_damage(const struct log_walk *walk, uint32_t bad);
static void set_torn(struct log_walk *walk);
static void hold_against(struct log_walk *walk, const struct log_note *note);
static int apply_to_file(struct log_application *apply, struct error *err);
static int write_pages(struct log_application *apply, struct error *err);
static int check_form(const struct log_application *apply, struct error *err);
static int read_page(
	const struct log_application *apply, uint32_t page, uint8_t *into, struct error *err);
static int write_page(struct log_application *apply, uint32_t page, struct error *err);

int log_walk(const char *path, const struct log_note *note, struct log_walk *out, struct error *err)
{
	*out = (struct log_walk){.state = LOG_EMPTY};
	struct log_reader *reader = memory_new(sizeof(*reader));
	*reader = (struct log_reader){.path = path, .walk = out, .note = note};
	reader->fd = open(path, O_RDONLY | O_CLOEXEC);
	int result = 0;
	if (reader->fd >= 0)
		result = walk_file(reader, err);
	else if (errno != ENOENT)
		result = error_set_errno(err, "cannot open %s", path);
	if (reader->fd >= 0)
		close(reader->fd);
	free(reader);
	return result;
}

void log_walk_release(struct log_walk *walk)
{
	free(walk->list);
	*walk = (struct log_walk){.state = LOG_EMPTY};
}

int log_walk_mend(const struct log_walk *walk, const struct file_ops *files, const char *path,
	struct error *err)
{
	if (walk->mend_count == 0)
		return 0;
	int fd = files->open(files, path, O_RDWR, 0);
	if (fd < 0)
		return error_set_errno(err, "cannot open %s", path);
	int result = 0;
	for (size_t i = 0; i < walk->mend_count && result == 0; i++)
		result = file_write_at(files, fd, span_of(&walk->mends[i].byte, 1),
			(off_t)walk->mends[i].offset, path, err);
	if (result == 0)
		result = file_sync(files, fd, path, err);
	close(fd);
	return result;
}

int log_walk_cut(const struct log_walk *walk, const struct file_ops *files, const char *path,
	struct error *err)
{
	ASSERT(walk->committed <= walk->frames);
	if (walk->frames == walk->committed)
		return 0;
	int fd = files->open(files, path, O_RDWR, 0);
	if (fd < 0)
		return error_set_errno(err, "cannot open %s", path);
	int result = 0;
	if (files->ftruncate(files, fd, HEADER_BYTES + (off_t)walk->committed * FRAME_BYTES) != 0)
		result = error_set_errno(err, "cannot cut %s", path);
	if (result == 0)
		result = file_sync(files, fd, path, err);
	close(fd);
	return result;
}

int log_walk_apply(const struct log_walk *walk, const struct file_ops *files, const char *log_path,
	const char *database_path, uint32_t *out_lost, struct error *err)
{
	ASSERT(walk->proven <= walk->frames);
	*out_lost = 0;
	if (walk->proven == 0)
		return 0;
	struct log_application apply = {.walk = walk,
		.files = files,
		.log_path = log_path,
		.path = database_path,
		.pages = walk->list[walk->proven - 1].pages};
	apply.log = files->open(files, log_path, O_RDONLY, 0);
	apply.database = files->open(files, database_path, O_RDWR, 0);
	int result = apply.log < 0 || apply.database < 0
		? error_set_errno(err, "cannot open %s or its log", database_path)
		: apply_to_file(&apply, err);
	if (apply.log >= 0)
		close(apply.log);
	if (apply.database >= 0)
		close(apply.database);
	*out_lost = apply.lost;
	return result;
}

static int walk_file(struct log_reader *reader, struct error *err)
{
	int got = read_at(reader, reader->bytes, HEADER_BYTES, 0, err);
	if (got == 1)
		got = read_at(reader, reader->next, FRAME_BYTES, HEADER_BYTES, err);
	if (got != 1)
		return got;
	reader->has_next = true;
	take_header(reader);
	if (walk_frames(reader, err) != 0)
		return -1;
	cut_tail(reader->walk);
	judge(reader->walk);
	hold_against(reader->walk, reader->note);
	return 0;
}

/* Returns 1 when it read everything, 0 when the file ends before, -1 on error. Bytes that the disk
 * cannot give count as zeros, which no checksum fits. */
static int read_at(const struct log_reader *reader, uint8_t *into, size_t len, uint64_t offset,
	struct error *err)
{
	size_t done = 0;
	while (done < len) {
		ssize_t got = pread(reader->fd, into + done, len - done, (off_t)(offset + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EIO) {
			memset(into + done, 0, len - done);
			return 1;
		}
		if (got < 0)
			return error_set_errno(err, "cannot read %s", reader->path);
		if (got == 0)
			return 0;
		done += (size_t)got;
	}
	return 1;
}

/* Judges the header in `bytes` and begins the chain with it. */
static void take_header(struct log_reader *reader)
{
	bool is_good = log_walk_header_fits(reader) || mend_header(reader);
	reader->big_endian = is_good && (big_endian_32(reader->bytes) & 1) != 0;
	if (is_good)
		memcpy(reader->salt, reader->bytes + HEADER_SALT_AT, sizeof(reader->salt));
	else
		guess_salt(reader, reader->salt);
	reader->stored = stored_sum(reader->bytes + HEADER_SUM_AT);
	reader->truth = reader->stored;
	reader->is_true = is_good;
	memcpy(&reader->walk->salt, reader->salt, sizeof(reader->walk->salt));
	reader->walk->has_header = is_good;
}

static bool log_walk_header_fits(const struct log_reader *reader)
{
	return (big_endian_32(reader->bytes) & ~UINT32_C(1)) == MAGIC &&
		sum_equal(header_sum(reader), stored_sum(reader->bytes + HEADER_SUM_AT));
}

static uint32_t big_endian_32(const uint8_t *from)
{
	uint32_t word;
	memcpy(&word, from, sizeof(word));
	return be32toh(word);
}

static bool sum_equal(struct log_sum a, struct log_sum b)
{
	return a.words[0] == b.words[0] && a.words[1] == b.words[1];
}

static struct log_sum header_sum(const struct log_reader *reader)
{
	bool big_endian = (big_endian_32(reader->bytes) & 1) != 0;
	return sum_over(big_endian, (struct log_sum){{0, 0}}, reader->bytes, HEADER_SUM_AT);
}

static struct log_sum sum_over(
	bool big_endian, struct log_sum sum, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i += 8) {
		uint32_t words[2];
		memcpy(words, bytes + i, sizeof(words));
		sum.words[0] += (big_endian ? be32toh(words[0]) : le32toh(words[0])) + sum.words[1];
		sum.words[1] += (big_endian ? be32toh(words[1]) : le32toh(words[1])) + sum.words[0];
	}
	return sum;
}

static struct log_sum stored_sum(const uint8_t *from)
{
	return (struct log_sum){{big_endian_32(from), big_endian_32(from + 4)}};
}

static bool mend_header(struct log_reader *reader)
{
	static const struct bit_search parts[] = {
		{0, HEADER_SUM_AT}, {HEADER_SUM_AT, HEADER_BYTES}};
	reader->big_endian = (reader->bytes[3] & 1) != 0;
	if (next_follows(reader, header_sum(reader)))
		return mend_sum(reader, HEADER_SUM_AT, header_sum(reader));
	bool sum_is_right = next_follows(reader, stored_sum(reader->bytes + HEADER_SUM_AT));
	return mend_bit(reader, parts, sum_is_right ? 1 : 2, log_walk_header_fits) == 1;
}

static bool next_follows(const struct log_reader *reader, struct log_sum before)
{
	struct log_sum sum = frame_sum(reader->big_endian, reader->next, before);
	return reader->has_next && sum_equal(sum, stored_sum(reader->next + SUM_AT));
}

static struct log_sum frame_sum(bool big_endian, const uint8_t *frame, struct log_sum before)
{
	struct log_sum sum = sum_over(big_endian, before, frame, SUMMED_BYTES);
	return sum_over(big_endian, sum, frame + FRAME_HEADER_BYTES, PAGE_BYTES);
}

static bool mend_sum(struct log_reader *reader, size_t at, struct log_sum sum)
{
	uint32_t words[2] = {htobe32(sum.words[0]), htobe32(sum.words[1])};
	uint8_t right[sizeof(words)];
	memcpy(right, words, sizeof(right));
	return mend_bytes(reader, at, right, sizeof(right));
}

/* Corrects bytes whose right values are known. */
static bool mend_bytes(struct log_reader *reader, size_t at, const uint8_t *right, size_t len)
{
	if (reader->walk->mend_count + count_others(reader->bytes + at, right, len) > LOG_MENDS_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if (reader->bytes[at + i] != right[i])
			note_mend(reader->walk, reader->offset + at + i, right[i]);
	memcpy(reader->bytes + at, right, len);
	return true;
}

static size_t count_others(const uint8_t *bytes, const uint8_t *right, size_t len)
{
	size_t others = 0;
	for (size_t i = 0; i < len; i++)
		others += bytes[i] != right[i];
	return others;
}

static void note_mend(struct log_walk *walk, uint64_t offset, uint8_t byte)
{
	ASSERT(walk->mend_count < LOG_MENDS_MAX);
	walk->mends[walk->mend_count++] = (struct log_mend){offset, byte};
}

/* Mends the bit that makes the whole fit. For these checksums some flips of high bits look alike,
 * so it must be the only one. Returns the number of candidates: 0, 1, or 2 for more. */
static unsigned mend_bit(
	struct log_reader *reader, const struct bit_search *parts, size_t count, fits_fn *fits)
{
	ASSERT(reader->walk->mend_count <= LOG_MENDS_MAX);
	unsigned found = 0;
	size_t found_bit = 0;
	for (size_t i = 0; i < count; i++)
		for (size_t bit = parts[i].from * 8; bit < parts[i].to * 8 && found < 2; bit++) {
			flip_bit(reader, bit);
			if (fits(reader)) {
				found++;
				found_bit = bit;
			}
			flip_bit(reader, bit);
		}
	if (found != 1)
		return found;
	if (reader->walk->mend_count == LOG_MENDS_MAX)
		return 2;
	flip_bit(reader, found_bit);
	note_mend(reader->walk, reader->offset + found_bit / 8, reader->bytes[found_bit / 8]);
	return 1;
}

static void flip_bit(struct log_reader *reader, size_t bit)
{
	reader->bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
}

/* Gives the salts of a log whose header is damaged by more than a bit: the noted ones, else those
 * of the first frame. The frames after that one prove themselves nevertheless. */
static void guess_salt(const struct log_reader *reader, uint8_t out[8])
{
	if (reader->note->salt != 0)
		memcpy(out, &reader->note->salt, sizeof(reader->note->salt));
	else
		memcpy(out, reader->next + SALT_AT, 8);
}

static int walk_frames(struct log_reader *reader, struct error *err)
{
	int got;
	for (uint64_t offset = HEADER_BYTES; (got = advance(reader, offset, err)) == 1;
		offset += FRAME_BYTES) {
		bool is_good = judge_frame(reader);
		add_frame(reader, is_good);
		reader->stored = stored_sum(reader->bytes + SUM_AT);
		reader->truth = reader->stored;
		reader->is_true = is_good;
	}
	return got;
}

/* Makes the next frame the present one. Returns 1, 0 at the end, -1 on error. */
static int advance(struct log_reader *reader, uint64_t offset, struct error *err)
{
	if (!reader->has_next)
		return 0;
	memcpy(reader->bytes, reader->next, FRAME_BYTES);
	reader->offset = offset;
	int got = read_at(reader, reader->next, FRAME_BYTES, offset + FRAME_BYTES, err);
	reader->has_next = got == 1;
	return got < 0 ? -1 : 1;
}

static bool judge_frame(struct log_reader *reader)
{
	if (reader->is_true && frame_fits(reader, reader->truth))
		return mend_bytes(reader, SALT_AT, reader->salt,
			sizeof(reader->salt)); /* which no checksum covers */
	if (!reader->is_true && salt_distance(reader) == 0 && frame_fits(reader, reader->stored))
		return true;
	return reader->is_true && mend_frame(reader);
}

static bool frame_fits(const struct log_reader *reader, struct log_sum before)
{
	return sum_equal(frame_sum(reader->big_endian, reader->bytes, before),
		stored_sum(reader->bytes + SUM_AT));
}

/* The number of bits in which the frame's salts differ. */
static int salt_distance(const struct log_reader *reader)
{
	uint64_t here;
	uint64_t wanted;
	memcpy(&here, reader->bytes + SALT_AT, sizeof(here));
	memcpy(&wanted, reader->salt, sizeof(wanted));
	return __builtin_popcountll(here ^ wanted);
}

/* The frame follows a true one and does not fit. Either its own checksum is wrong, and the next
 * frame continues what that was; or a bit that it covers is wrong. Without a next frame, a bit of
 * the checksum and a bit of the page's last bytes look alike. Those bytes are unused, so the
 * checksum is corrected. */
static bool mend_frame(struct log_reader *reader)
{
	static const struct bit_search covered[] = {
		{0, SUMMED_BYTES}, {FRAME_HEADER_BYTES, FRAME_BYTES}};
	static const struct bit_search all[] = {{0, SUMMED_BYTES},
		{FRAME_HEADER_BYTES, FRAME_BYTES - PAGE_SUM_BYTES}, {SUM_AT, FRAME_HEADER_BYTES}};
	static const struct bit_search unused = {FRAME_BYTES - PAGE_SUM_BYTES, FRAME_BYTES};
	struct log_sum sum = frame_sum(reader->big_endian, reader->bytes, reader->truth);
	if (salt_distance(reader) != 0)
		return false;
	if (next_follows(reader, sum))
		return mend_sum(reader, SUM_AT, sum);
	if (next_follows(reader, stored_sum(reader->bytes + SUM_AT)))
		return mend_bit(reader, covered, 2, log_walk_follows_truth) == 1;
	unsigned found = mend_bit(reader, all, 3, log_walk_follows_truth);
	return found == 0 ? mend_bit(reader, &unused, 1, log_walk_follows_truth) == 1 : found == 1;
}

static bool log_walk_follows_truth(const struct log_reader *reader)
{
	return frame_fits(reader, reader->truth);
}

static void add_frame(struct log_reader *reader, bool is_good)
{
	struct log_walk *const walk = reader->walk;
	walk->list =
		memory_make_room(walk->list, walk->frames, &reader->capacity, sizeof(*walk->list));
	walk->list[walk->frames++] = (struct log_frame){
		.page = big_endian_32(reader->bytes),
		.pages = big_endian_32(reader->bytes + 4),
		.is_good = is_good,
		.is_of_log = is_good || salt_distance(reader) == 0,
	};
}

/* Drops frames of an earlier use of the file. */
static void cut_tail(struct log_walk *walk)
{
	while (walk->frames > 0 && !walk->list[walk->frames - 1].is_of_log)
		walk->frames--;
}

static void judge(struct log_walk *walk)
{
	uint32_t bad = first_bad(walk);
	walk->committed = walk->has_header ? last_commit(walk, bad) : 0;
	walk->proven = walk->committed;
	if (walk->frames == 0)
		walk->state = LOG_EMPTY;
	else if (!walk->has_header)
		set_damaged(walk, walk->frames);
	else if (bad == walk->frames)
		walk->state = LOG_SOUND;
	else if (is_proven_damage(walk, bad))
		set_damaged(walk, walk->frames);
	else
		set_torn(walk);
}

static uint32_t first_bad(const struct log_walk *walk)
{
	uint32_t bad = 0;
	while (bad < walk->frames && walk->list[bad].is_good)
		bad++;
	return bad;
}

static uint32_t last_commit(const struct log_walk *walk, uint32_t end)
{
	ASSERT(end <= walk->frames);
	while (end > 0 && (!walk->list[end - 1].is_good || walk->list[end - 1].pages == 0))
		end--;
	return end;
}

static void set_damaged(struct log_walk *walk, uint32_t end)
{
	walk->state = LOG_DAMAGED;
	walk->proven = last_commit(walk, end);
	count_bad(walk);
}

static void count_bad(struct log_walk *walk)
{
	walk->bad = 0;
	for (uint32_t i = 0; i < walk->proven; i++)
		walk->bad += !walk->list[i].is_good;
}

/* Whether a later transaction follows the bad frame. Every commit is synced before the next frame
 * is written, so that a later transaction proves damage. It shows by a commit, or by a frame that
 * continues right where another transaction ended. Single frames prove nothing: if a transaction
 * was given up, or broken off by a power cut, and a shorter one took its place, its remaining
 * frames prove themselves too. Frames before the next commit prove nothing either: they may belong
 * to the bad frame's own transaction, which was then never synced. Nor does the header of an
 * earlier use of the file, which a power cut leaves where the present header was not written. */
static bool is_proven_damage(const struct log_walk *walk, uint32_t bad)
{
	ASSERT(bad < walk->frames);
	bool goes_on = walk->list[bad].is_of_log && walk->list[bad].pages != 0;
	bool has_commit = goes_on;
	for (uint32_t i = bad + 1; i < walk->frames; i++) {
		const struct log_frame *frame = &walk->list[i];
		bool ends = frame->is_good && frame->pages != 0;
		if (frame->is_good && (goes_on || (ends && has_commit)))
			return true;
		has_commit |= ends;
		goes_on = ends;
	}
	return false;
}

static void set_torn(struct log_walk *walk)
{
	walk->state = LOG_TORN;
	walk->proven = walk->committed;
	walk->bad = 0;
}

/* A file without a header and without a frame of the noted log says nothing about it. */
static void hold_against(struct log_walk *walk, const struct log_note *note)
{
	bool is_noted = note->salt != 0 && walk->salt == note->salt &&
		(walk->has_header || walk->frames > 0);
	/* nobody was told of the frames after it */
	bool is_cut = note->is_exact && note->frames < walk->frames;
	if (is_noted && note->frames > walk->committed)
		set_damaged(walk, is_cut ? note->frames : walk->frames);
	else if (is_noted && note->is_exact && walk->has_header && walk->state == LOG_DAMAGED)
		set_torn(walk);
}

static int apply_to_file(struct log_application *apply, struct error *err)
{
	if (write_pages(apply, err) != 0)
		return -1;
	if (apply->files->ftruncate(
		    apply->files, apply->database, (off_t)apply->pages * PAGE_BYTES) != 0)
		return error_set_errno(err, "cannot cut %s", apply->path);
	return file_sync(apply->files, apply->database, apply->path, err);
}

static int write_pages(struct log_application *apply, struct error *err)
{
	const struct log_walk *walk = apply->walk;
	apply->newest = memory_new_array((size_t)apply->pages + 1, sizeof(*apply->newest));
	for (uint32_t i = 0; i < walk->proven; i++) {
		const struct log_frame *frame = &walk->list[i];
		if (frame->is_of_log && frame->page >= 1 && frame->page <= apply->pages)
			apply->newest[frame->page] = i + 1;
		else
			apply->lost += !frame->is_good;
	}
	int result = check_form(apply, err);
	for (uint32_t page = 1; page <= apply->pages && result == 0; page++)
		if (apply->newest[page] != 0)
			result = write_page(apply, page, err);
	free(apply->newest);
	return result;
}

/* Nothing of a database can be read without its first page. */
static int check_form(const struct log_application *apply, struct error *err)
{
	uint8_t page[PAGE_BYTES];
	uint32_t frame = apply->newest[1];
	if (frame != 0 && !apply->walk->list[frame - 1].is_good)
		return error_set(err, ERROR_DAMAGED,
			"Frame %u of %s is damaged. It holds the newest page 1, without which nothing can be read."
			" Put %s and its log back as they were.",
			frame, apply->log_path, apply->path);
	if (read_page(apply, 1, page, err) != 0)
		return -1;
	return page[RESERVED_AT] == PAGE_SUM_BYTES
		? 0
		: error_set(err, ERROR_UNSUPPORTED,
			  "%s has pages without checksums, so lost pages could not be marked in it.",
			  apply->path);
}

static int read_page(
	const struct log_application *apply, uint32_t page, uint8_t *into, struct error *err)
{
	ASSERT(page >= 1 && page <= apply->pages);
	const struct iovec whole = {.iov_base = into, .iov_len = PAGE_BYTES};
	uint32_t frame = apply->newest[page];
	if (frame == 0)
		return file_read_at(apply->files, apply->database, whole,
			(off_t)(page - 1) * PAGE_BYTES, apply->path, err);
	off_t offset = HEADER_BYTES + (off_t)(frame - 1) * FRAME_BYTES + FRAME_HEADER_BYTES;
	return file_read_at(apply->files, apply->log, whole, offset, apply->log_path, err);
}

static int write_page(struct log_application *apply, uint32_t page, struct error *err)
{
	uint8_t bytes[PAGE_BYTES] = {0};
	ASSERT(apply->newest[page] != 0);
	bool is_good = apply->walk->list[apply->newest[page] - 1].is_good;
	if (is_good && read_page(apply, page, bytes, err) != 0)
		return -1;
	page_sum_put(bytes, page);
	if (!is_good) { /* more than one bit, so that nothing mends it */
		bytes[PAGE_BYTES - 1] ^= 0xff;
		apply->lost++;
	}
	return file_write_at(apply->files, apply->database, span_of(bytes, sizeof(bytes)),
		(off_t)(page - 1) * PAGE_BYTES, apply->path, err);
}
