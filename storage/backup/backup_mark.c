#include "storage/backup/backup_mark.h"

#include <stdio.h>
#include <string.h>

enum { INDEX_MAX_BYTES = 64 * 1024 * 1024 };
static const size_t PACKS_FRONT = sizeof(BACKUP_PACKS); /* with the slash */
static const size_t MARKS_FRONT = sizeof(BACKUP_MARKS);

struct mark_listing {
	backup_mark_take_fn *take;
	void *taker;
};

static int backup_mark_take(void *taker, const struct backup_object *object, struct error *err);
static void read_index(
	const struct source_file *pack, const char *folder, struct buffer *out);

int backup_mark_put(struct backup_vault *vault, const struct source_file *pack, const char *folder,
	struct error *err)
{
	struct buffer index;
	char name[BACKUP_NAME_BYTES];
	buffer_init(&index, INDEX_MAX_BYTES);
	read_index(pack, folder, &index);
	backup_mark_name(pack->key, name);
	const int result = backup_vault_put(vault, name, buffer_span(&index), err);
	buffer_release(&index);
	return result;
}

int backup_mark_mend(struct backup_vault *vault, const struct source_file *pack, const char *folder,
	bool *out_mended, struct error *err)
{
	struct buffer index;
	struct buffer found;
	struct error ignored;
	int result = 0;
	buffer_init(&index, INDEX_MAX_BYTES);
	buffer_init(&found, INDEX_MAX_BYTES);
	read_index(pack, folder, &index);
	*out_mended = index.len > 0 &&
		(backup_mark_get(vault, pack->key, &found, &ignored) != 0 ||
			!span_equal(buffer_span(&found), buffer_span(&index)));
	if (*out_mended)
		result = backup_mark_put(vault, pack, folder, err);
	buffer_release(&index);
	buffer_release(&found);
	return result;
}

int backup_mark_get(
	struct backup_vault *vault, const char *key, struct buffer *out, struct error *err)
{
	char name[BACKUP_NAME_BYTES];
	backup_mark_name(key, name);
	return backup_vault_get(vault, name, out, err);
}

int backup_marks_each(
	struct backup_target *target, backup_mark_take_fn *take, void *taker, struct error *err)
{
	struct mark_listing listing = {.take = take, .taker = taker};
	return target->ops->list(target, BACKUP_MARKS, backup_mark_take, &listing, err);
}

void backup_mark_name(const char *key, char out[BACKUP_NAME_BYTES])
{
	snprintf(out, BACKUP_NAME_BYTES, BACKUP_MARKS "/%s", key + PACKS_FRONT);
}

static int backup_mark_take(void *taker, const struct backup_object *object, struct error *err)
{
	const struct mark_listing *listing = taker;
	char key[BACKUP_NAME_BYTES];
	char path[BACKUP_NAME_BYTES];
	if (strlen(object->name) <= MARKS_FRONT)
		return 0;
	snprintf(key, sizeof(key), BACKUP_PACKS "/%.100s", object->name + MARKS_FRONT);
	return strlen(key) < BACKUP_KEY_BYTES && backup_key_path(key, path)
		? listing->take(listing->taker, key, object->changed_ms, err)
		: 0;
}

/* Without one the mark still says that the pack is damaged. */
static void read_index(const struct source_file *pack, const char *folder, struct buffer *out)
{
	struct error ignored;
	if (source_file_index(pack, folder, out, &ignored) != 0)
		buffer_reset(out);
}
