#include "client/follow/earlier_generation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/local/folder_files.h"
#include "weights/model/relative_path.h"

static int take(const struct earlier_generation *earlier, const struct follow_generation *found,
	struct error *err);
static int prove(const struct earlier_generation *earlier, const struct follow_generation *found,
	const char *folder, struct error *err);
static int share(const struct file_ops *files, const struct proven_files *proven, const char *from,
	const char *to, struct error *err);

int earlier_generation_make(const struct earlier_generation *earlier, struct error *err)
{
	struct follow_generation found;
	if (!follow_folder_find(earlier->folder, earlier->swap, &found))
		return 0;
	const int result = take(earlier, &found, err);
	follow_generation_release(&found);
	return result;
}

static int take(const struct earlier_generation *earlier, const struct follow_generation *found,
	struct error *err)
{
	struct error damage = {0};
	follow_report_wanted(earlier->report, REPLICA_STAGING, found->step);
	char *const folder = follow_folder_path(earlier->folder, found->name);
	int result =
		prove(earlier, found, folder, &damage) == 0 ? 1 : stop_check(earlier->stop, err);
	if (result > 0) {
		proven_files_copy(found->files.files, found->files.count, earlier->files);
		earlier->swap->held = found->held;
		earlier->swap->files = earlier->files;
		if (share(earlier->ops, earlier->files, folder, earlier->out, err) != 0)
			result = -1;
	}
	free(folder);
	return result;
}

static int prove(const struct earlier_generation *earlier, const struct follow_generation *found,
	const char *folder, struct error *err)
{
	char what[64];
	snprintf(what, sizeof(what), "checking step %" PRIu64, found->step);
	struct progress *const progress =
		progress_new(what, proven_files_bytes(&found->files), earlier->progress_sink);
	struct work_watch *const watch = progress_watch(progress, earlier->stop);
	const int result = proven_files_check(&found->files, folder, earlier->threads, watch, err);
	progress_free(progress);
	return result;
}

/* A kill leaves a folder without a sidecar, which the next start removes. */
static int share(const struct file_ops *files, const struct proven_files *proven, const char *from,
	const char *to, struct error *err)
{
	struct error ignored = {0};
	int result = file_make_folder(files, to, 0755, err);
	for (size_t i = 0; i < proven->count && result == 0; i++) {
		char *const old = relative_path_join(from, proven->files[i].path);
		char *const fresh = relative_path_join(to, proven->files[i].path);
		result = file_make_parent(files, fresh, 0755, err);
		if (result == 0)
			result = file_share(files, old, fresh, err);
		free(old);
		free(fresh);
	}
	if (result == 0)
		result = folder_files_sync(files, to, err);
	if (result != 0)
		file_remove_tree(files, to, &ignored);
	return result;
}
