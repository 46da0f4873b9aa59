/* Files that no row names: in packs/, where a start settles them, and in set-aside/. While a server
 * runs, packs of uploads have no rows yet, so packs/ is not looked at. */
#include "storage/fsck/fsck_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/core/pack_row.h"
#include "storage/core/removal_row.h"
#include "storage/packs/pack_format.h"
#include "storage/packs/set_aside.h"

struct file_look {
	struct fsck *fsck;
	struct pack_id *names; /* of files that rows name, sorted */
	size_t count;
};

static int check_strays(struct fsck *fsck, struct error *err);
static int list_names(struct file_look *look, struct error *err);
static int fsck_compare_names(const void *a, const void *b);
static int fsck_take_file(void *taker, const char *name, uint64_t size, struct error *err);
static int check_aside(struct fsck *fsck, struct error *err);

int fsck_files(struct fsck *fsck, struct error *err)
{
	if (!fsck->params->is_online && check_strays(fsck, err) != 0)
		return -1;
	return check_aside(fsck, err);
}

static int check_strays(struct fsck *fsck, struct error *err)
{
	struct file_look look = {.fsck = fsck};
	int result = list_names(&look, err);
	if (result != 0)
		result = fsck_tell_failure(fsck, FINDING_TABLE, "table packs", err);
	else
		result = fsck->backend->ops->list(fsck->backend, fsck_take_file, &look, err);
	free(look.names);
	return result;
}

static int list_names(struct file_look *look, struct error *err)
{
	struct pack_record *records = NULL;
	struct pack_id *removals = NULL;
	size_t record_count = 0;
	size_t removal_count = 0;
	int result = pack_row_list(look->fsck->db, &records, &record_count, err);
	if (result == 0)
		result = removal_row_list(look->fsck->db, 0, &removals, &removal_count, err);
	look->names = memory_new_array(record_count + removal_count + 1, sizeof(*look->names));
	for (size_t i = 0; i < record_count; i++)
		look->names[look->count++] = *pack_record_file(&records[i]);
	for (size_t i = 0; i < removal_count; i++)
		look->names[look->count++] = removals[i];
	qsort(look->names, look->count, sizeof(*look->names), fsck_compare_names);
	free(records);
	free(removals);
	return result;
}

static int fsck_compare_names(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct pack_id));
}

static int fsck_take_file(void *taker, const char *name, uint64_t size, struct error *err)
{
	struct file_look *look = taker;
	struct pack_id file;
	enum pack_file_kind kind;
	char subject[FINDING_SUBJECT_BYTES];
	char text[ERROR_TEXT_BYTES];
	if (!pack_format_parse_name(name, &file, &kind) || kind != PACK_FILE_PACK ||
		bsearch(&file, look->names, look->count, sizeof(file), fsck_compare_names) != NULL)
		return 0;
	snprintf(subject, sizeof(subject), "packs/%.2s/%s", name, name);
	snprintf(text, sizeof(text),
		"No row names this file of %" PRIu64
		" bytes. The next start removes what proves to be garbage and sets the rest aside.",
		size);
	return fsck_tell(look->fsck, FINDING_STRAY, subject, text, err);
}

static int check_aside(struct fsck *fsck, struct error *err)
{
	struct set_aside aside;
	char text[ERROR_TEXT_BYTES];
	if (set_aside_list(fsck->params->folder, &aside, err) != 0)
		return -1;
	snprintf(text, sizeof(text), "%zu files of %" PRIu64 " bytes are set aside.", aside.count,
		aside.bytes);
	const int result =
		aside.count == 0 ? 0 : fsck_tell(fsck, FINDING_SET_ASIDE, "set-aside/", text, err);
	set_aside_release(&aside);
	return result;
}
