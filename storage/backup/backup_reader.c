/* It lies beside about/store, in a folder that belongs to whoever writes the backups, who can then
 * see it whoever restores. The newest moment tells what the clock of the target says. */
#include "storage/backup/backup_reader.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/encode.h"
#include "base/random.h"
#include "storage/backup/backup_moment.h"

#define KIND  "about"
#define FRONT KIND "/reader-"
enum { ID_BYTES = 8 };
static const int64_t COUNTS_MS = 24 * 60 * 60 * 1000;
static const int64_t RENEW_MS = 60 * 60 * 1000;
static const char CONTENT[] = "A restore reads this place; nothing is pruned meanwhile.\n";

struct reader_search {
	char name[BACKUP_NAME_BYTES]; /* of the newest one */
	int64_t changed_ms;
	int64_t now_ms; /* at least; by the clock of the target */
};

static int put(struct backup_reader *reader, struct error *err);
static int backup_reader_take(void *taker, const struct backup_object *object, struct error *err);
static int backup_reader_take_time(
	void *taker, const struct backup_object *object, struct error *err);

int backup_reader_begin(
	struct backup_reader *out, struct backup_target *target, struct error *err)
{
	uint8_t id[ID_BYTES];
	char text[2 * ID_BYTES + 1];
	*out = (struct backup_reader){.target = target};
	random_bytes(id, sizeof(id));
	encode_hex(span_of(id, sizeof(id)), text);
	snprintf(out->name, sizeof(out->name), FRONT "%s", text);
	if (put(out, err) == 0)
		return 0;
	*out = (struct backup_reader){.target = NULL};
	return -1;
}

void backup_reader_renew(struct backup_reader *reader)
{
	struct error ignored;
	if (reader->target != NULL && clock_monotonic_ms() >= reader->renew_ms)
		(void)put(reader, &ignored);
}

void backup_reader_end(struct backup_reader *reader)
{
	struct error ignored;
	if (reader->target != NULL)
		(void)reader->target->ops->remove(reader->target, reader->name, &ignored);
	reader->target = NULL;
}

int backup_reader_find(struct backup_target *target, char out[BACKUP_NAME_BYTES], struct error *err)
{
	struct reader_search search = {.changed_ms = INT64_MIN, .now_ms = INT64_MIN};
	out[0] = '\0';
	if (target->ops->list(target, KIND, backup_reader_take, &search, err) != 0)
		return -1;
	if (search.name[0] == '\0')
		return 0;
	if (target->ops->list(target, BACKUP_MOMENTS, backup_reader_take_time, &search, err) != 0)
		return -1;
	if (search.now_ms <= search.changed_ms || search.now_ms - search.changed_ms < COUNTS_MS)
		memcpy(out, search.name, sizeof(search.name));
	return 0;
}

static int put(struct backup_reader *reader, struct error *err)
{
	reader->renew_ms = clock_monotonic_ms() + RENEW_MS;
	return reader->target->ops->put(reader->target, reader->name, span_text(CONTENT), err);
}

static int backup_reader_take(void *taker, const struct backup_object *object, struct error *err)
{
	struct reader_search *search = taker;
	(void)err;
	if (strncmp(object->name, FRONT, sizeof(FRONT) - 1) != 0 ||
		object->changed_ms <= search->changed_ms)
		return 0;
	snprintf(search->name, sizeof(search->name), "%s", object->name);
	search->changed_ms = object->changed_ms;
	return 0;
}

static int backup_reader_take_time(
	void *taker, const struct backup_object *object, struct error *err)
{
	struct reader_search *search = taker;
	(void)err;
	if (object->changed_ms > search->now_ms)
		search->now_ms = object->changed_ms;
	return 0;
}
