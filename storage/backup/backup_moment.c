#include "storage/backup/backup_moment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

enum { TIME_LETTERS = 16 };

static int backup_moment_take(void *taker, const struct backup_object *object, struct error *err);

void backup_moment_print(const struct backup_moment *moment, char out[BACKUP_MOMENT_BYTES])
{
	char time[CLOCK_TEXT_BYTES];
	clock_format_amz(moment->made_ms, time);
	snprintf(out, BACKUP_MOMENT_BYTES, "%.16s-%" PRIu64 "-%" PRId64, time, moment->life,
		moment->change);
}

/* Only the text that backup_moment_print would make. */
bool backup_moment_parse(struct span text, struct backup_moment *out)
{
	char again[BACKUP_MOMENT_BYTES];
	struct span rest = span_slice(text, TIME_LETTERS + 1, text.len);
	struct span life;
	uint64_t change;
	if (!clock_parse_amz(span_slice(text, 0, TIME_LETTERS), &out->made_ms) ||
		!span_split(&rest, '-', &life) || !span_parse_u64(life, &out->life) ||
		!span_parse_u64(rest, &change))
		return false;
	out->change = (int64_t)change;
	backup_moment_print(out, again);
	return span_equal_text(text, again);
}

int backup_moment_compare(const struct backup_moment *a, const struct backup_moment *b)
{
	if (a->life != b->life)
		return a->life < b->life ? -1 : 1;
	if (a->change != b->change)
		return a->change < b->change ? -1 : 1;
	return a->made_ms < b->made_ms ? -1 : a->made_ms > b->made_ms;
}

void backup_moment_name(const struct backup_moment *moment, char out[BACKUP_NAME_BYTES])
{
	char text[BACKUP_MOMENT_BYTES];
	backup_moment_print(moment, text);
	snprintf(out, BACKUP_NAME_BYTES, BACKUP_MOMENTS "/%s", text);
}

void backup_moments_add(struct backup_moments *moments, const struct backup_moment *moment)
{
	moments->items = memory_make_room(
		moments->items, moments->count, &moments->capacity, sizeof(*moments->items));
	size_t at = moments->count++;
	while (at > 0 && backup_moment_compare(&moments->items[at - 1], moment) > 0) {
		moments->items[at] = moments->items[at - 1];
		at--;
	}
	moments->items[at] = *moment;
}

int backup_moments_list(struct backup_target *target, struct backup_moments *out, struct error *err)
{
	*out = (struct backup_moments){.count = 0};
	if (target->ops->list(target, BACKUP_MOMENTS, backup_moment_take, out, err) != 0) {
		backup_moments_release(out);
		return -1;
	}
	return 0;
}

void backup_moments_release(struct backup_moments *moments)
{
	free(moments->items);
	*moments = (struct backup_moments){.count = 0};
}

int backup_moments_find(const struct backup_moments *moments, const char *text,
	struct backup_moment *out, struct error *err)
{
	char name[BACKUP_MOMENT_BYTES] = "";
	if (moments->count == 0)
		return error_set(err, ERROR_NOT_FOUND, "There is no whole backup yet.");
	*out = moments->items[moments->count - 1];
	if (strcmp(text, "latest") == 0)
		return 0;
	for (size_t i = moments->count; i-- > 0;) {
		*out = moments->items[i];
		backup_moment_print(out, name);
		if (strcmp(name, text) == 0)
			return 0;
	}
	return error_set(err, ERROR_NOT_FOUND,
		"There is no moment %.80s; the oldest one of %zu is %s, and --list shows them all.",
		text, moments->count, name);
}

static int backup_moment_take(void *taker, const struct backup_object *object, struct error *err)
{
	struct backup_moments *moments = taker;
	struct backup_moment moment;
	const size_t front = sizeof(BACKUP_MOMENTS); /* with the slash */
	(void)err;
	if (strlen(object->name) <= front ||
		!backup_moment_parse(span_text(object->name + front), &moment))
		return 0;
	backup_moments_add(moments, &moment);
	return 0;
}
