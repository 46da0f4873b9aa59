/* The file is text: a title, a line for each hold, and a checksum of all before it. Whoever asks
 * pays no system call: the list in memory is the truth while the process runs, and the file is
 * written before the list changes. */
#include "storage/packs/backup_holds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/xxh3.h"
#include "base/encode.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread/lock.h"

enum { TEXT_MAX_BYTES = 8192, SUM_LINE_BYTES = 4 + 16 + 1, FILE_MODE = 0600 };
static const char TITLE[] = "deltabucket backup holds 1\n";

struct hold_list {
	struct backup_hold holds[BACKUP_HOLDS_MAX];
	size_t count;
};

struct backup_holds {
	const struct file_ops *files;
	const struct clock_source *clock;
	struct log *log;
	char *path;
	struct lock lock;
	struct hold_list list; /* guarded by lock */
};

typedef int write_fn(struct backup_holds *holds, const struct hold_list *list, struct error *err);

static int take(struct backup_holds *holds, const char *name, write_fn *write,
	struct backup_hold *out, struct error *err);
static void load(struct backup_holds *holds);
static int read_list(struct span text, struct hold_list *out, struct error *err);
static bool take_line(struct span line, struct hold_list *out);
static bool is_name(const char *name);
static struct hold_list drop_ended(const struct backup_holds *holds);
static void drop_at(struct hold_list *list, size_t at);
static int write_list(struct backup_holds *holds, const struct hold_list *list, struct error *err);
static int write_or_keep(
	struct backup_holds *holds, const struct hold_list *list, struct error *err);
static void print_list(const struct hold_list *list, struct buffer *out);

struct backup_holds *backup_holds_new(const struct file_ops *files, const char *folder,
	const struct clock_source *clock, struct log *log)
{
	static const char name[] = "/backup-holds";
	struct backup_holds *holds = memory_new(sizeof(*holds));
	holds->files = files;
	holds->clock = clock;
	holds->log = log;
	holds->path = memory_new(strlen(folder) + sizeof(name));
	snprintf(holds->path, strlen(folder) + sizeof(name), "%s%s", folder, name);
	lock_init(&holds->lock, LOCK_BACKUP_HOLDS);
	load(holds);
	return holds;
}

void backup_holds_free(struct backup_holds *holds)
{
	if (holds == NULL)
		return;
	lock_release(&holds->lock);
	free(holds->path);
	free(holds);
}

int backup_holds_take(
	struct backup_holds *holds, const char *name, struct backup_hold *out, struct error *err)
{
	return take(holds, name, write_list, out, err);
}

int backup_holds_take_here(
	struct backup_holds *holds, const char *name, struct backup_hold *out, struct error *err)
{
	return take(holds, name, write_or_keep, out, err);
}

static int take(struct backup_holds *holds, const char *name, write_fn *write,
	struct backup_hold *out, struct error *err)
{
	if (!is_name(name))
		return error_set(err, ERROR_INVALID,
			"The name of a backup has 1 to 64 letters, digits, '.', '_' and '-'.");
	*out = (struct backup_hold){.made_ms = holds->clock->wall_ms(holds->clock)};
	out->until_ms = out->made_ms + BACKUP_HOLD_MS;
	random_bytes(out->id, sizeof(out->id));
	snprintf(out->name, sizeof(out->name), "%s", name);
	lock_enter(&holds->lock);
	struct hold_list list = drop_ended(holds);
	for (size_t i = list.count; i-- > 0;)
		if (strcmp(list.holds[i].name, name) == 0)
			drop_at(&list, i);
	int result = list.count < BACKUP_HOLDS_MAX
		? 0
		: error_set(err, ERROR_BUSY, "%d backups are under way, and no more can be.",
			  BACKUP_HOLDS_MAX);
	if (result == 0) {
		list.holds[list.count++] = *out;
		result = write(holds, &list, err);
	}
	lock_leave(&holds->lock);
	return result;
}

int backup_holds_end(
	struct backup_holds *holds, const uint8_t id[BACKUP_HOLD_ID_BYTES], struct error *err)
{
	lock_enter(&holds->lock);
	struct hold_list list = drop_ended(holds);
	const size_t before = list.count;
	for (size_t i = list.count; i-- > 0;)
		if (memcmp(list.holds[i].id, id, BACKUP_HOLD_ID_BYTES) == 0)
			drop_at(&list, i);
	const int result = list.count < before
		? write_or_keep(holds, &list, err)
		: error_set(err, ERROR_NOT_FOUND,
			  "The hold of this backup has ended: it took more than %d hours, or another backup"
			  " of the same name began.",
			  BACKUP_HOLD_MS / (60 * 60 * 1000));
	lock_leave(&holds->lock);
	return result;
}

size_t backup_holds_list(struct backup_holds *holds, struct backup_hold out[BACKUP_HOLDS_MAX])
{
	lock_enter(&holds->lock);
	const struct hold_list list = drop_ended(holds);
	lock_leave(&holds->lock);
	memcpy(out, list.holds, list.count * sizeof(list.holds[0]));
	return list.count;
}

bool backup_holds_any(struct backup_holds *holds)
{
	if (holds == NULL)
		return false;
	lock_enter(&holds->lock);
	const struct hold_list list = drop_ended(holds);
	lock_leave(&holds->lock);
	return list.count > 0;
}

/* A file that cannot be read may have held anything. */
static void load(struct backup_holds *holds)
{
	struct buffer text;
	struct error err = {0};
	buffer_init(&text, TEXT_MAX_BYTES);
	if (file_read_all(holds->path, &text, &err) == 0)
		(void)read_list(buffer_span(&text), &holds->list, &err);
	buffer_release(&text);
	if (err.kind == ERROR_NONE || err.kind == ERROR_NOT_FOUND)
		return;
	log_failure(holds->log, LOG_WARNING, NULL, "backup_holds", &err);
	const int64_t now = holds->clock->wall_ms(holds->clock);
	holds->list = (struct hold_list){.count = 1};
	holds->list.holds[0] = (struct backup_hold){
		.name = "unknown", .made_ms = now, .until_ms = now + BACKUP_HOLD_MS};
}

static int read_list(struct span text, struct hold_list *out, struct error *err)
{
	char sum[SUM_LINE_BYTES + 1];
	const size_t len = text.len > SUM_LINE_BYTES ? text.len - SUM_LINE_BYTES : 0;
	struct span lines = span_slice(text, 0, len);
	struct span line;
	snprintf(sum, sizeof(sum), "sum %016" PRIx64 "\n", xxh3_64(lines));
	bool is_whole = span_starts(lines, span_text(TITLE)) &&
		span_equal_text(span_slice(text, len, text.len), sum);
	lines = span_slice(lines, sizeof(TITLE) - 1, lines.len);
	while (is_whole && span_split(&lines, '\n', &line))
		is_whole = line.len == 0 || take_line(line, out);
	return is_whole ? 0 : error_set(err, ERROR_CORRUPT, "The file backup-holds is damaged.");
}

/* "hold ID MADE UNTIL NAME" */
static bool take_line(struct span line, struct hold_list *out)
{
	struct backup_hold hold = {.made_ms = 0};
	struct span words[4];
	uint64_t made;
	uint64_t until;
	struct span title;
	bool is_right = out->count < BACKUP_HOLDS_MAX && span_split(&line, ' ', &title);
	for (size_t i = 0; i < 4; i++)
		is_right = is_right && span_split(&line, ' ', &words[i]);
	if (!is_right || line.len > 0 || words[3].len >= sizeof(hold.name) ||
		!decode_hex(words[0], hold.id, sizeof(hold.id)) ||
		!span_parse_u64(words[1], &made) || !span_parse_u64(words[2], &until))
		return false;
	hold.made_ms = (int64_t)made;
	hold.until_ms = (int64_t)until;
	memcpy(hold.name, words[3].data, words[3].len);
	out->holds[out->count++] = hold;
	return is_name(hold.name);
}

static bool is_name(const char *name)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	const size_t len = strlen(name);
	return len > 0 && len < BACKUP_HOLD_NAME_BYTES && strspn(name, letters) == len;
}

/* A clock that went back ends a hold, too: it may not last longer than it was made for. */
static struct hold_list drop_ended(const struct backup_holds *holds)
{
	struct hold_list list = holds->list;
	if (list.count == 0)
		return list;
	const int64_t now = holds->clock->wall_ms(holds->clock);
	for (size_t i = list.count; i-- > 0;)
		if (now >= list.holds[i].until_ms ||
			now < list.holds[i].until_ms - 2 * (int64_t)BACKUP_HOLD_MS)
			drop_at(&list, i);
	return list;
}

static void drop_at(struct hold_list *list, size_t at)
{
	list->count--;
	memmove(&list->holds[at], &list->holds[at + 1],
		(list->count - at) * sizeof(list->holds[0]));
}

static int write_list(struct backup_holds *holds, const struct hold_list *list, struct error *err)
{
	struct buffer text;
	buffer_init(&text, TEXT_MAX_BYTES);
	print_list(list, &text);
	int result = file_publish(holds->files, holds->path, buffer_span(&text), FILE_MODE, err);
	buffer_release(&text);
	if (result == 0)
		holds->list = *list;
	return result;
}

/* What the file says besides lasts a day at the most. */
static int write_or_keep(
	struct backup_holds *holds, const struct hold_list *list, struct error *err)
{
	struct error why = {0};
	if (write_list(holds, list, &why) == 0)
		return 0;
	if (why.kind != ERROR_NO_SPACE && why.kind != ERROR_READ_ONLY) {
		*err = why;
		return -1;
	}
	log_failure(holds->log, LOG_WARNING, NULL, "backup_holds", &why);
	holds->list = *list;
	return 0;
}

static void print_list(const struct hold_list *list, struct buffer *out)
{
	buffer_add_text(out, TITLE);
	for (size_t i = 0; i < list->count; i++) {
		const struct backup_hold *hold = &list->holds[i];
		char id[2 * BACKUP_HOLD_ID_BYTES + 1];
		encode_hex(span_of(hold->id, sizeof(hold->id)), id);
		buffer_format(out, "hold %s %" PRId64 " %" PRId64 " %s\n", id, hold->made_ms,
			hold->until_ms, hold->name);
	}
	buffer_format(out, "sum %016" PRIx64 "\n", xxh3_64(buffer_span(out)));
}
