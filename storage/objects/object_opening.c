#include "storage/objects/object_opening.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread/helpers.h"
#include "storage/objects/object_view.h"

struct object_opening {
	struct helper_job job;
	struct helper_lane lane;
	struct store *store;
	struct object object;
	uint64_t offset;
	uint64_t length;
	void (*done)(void *owner);
	void *owner;
	struct body_source *source;
	struct error error; /* when `source` is NULL */
};

static void object_opening_run(struct helper_job *job);

struct object_opening *object_opening_start(struct store *store, const struct object *object,
	uint64_t offset, uint64_t length, void (*done)(void *owner), void *owner)
{
	ASSERT(done != NULL);
	struct object_opening *const opening = memory_new(sizeof(*opening));
	*opening = (struct object_opening){.job.run = object_opening_run,
		.store = store,
		.object = *object,
		.offset = offset,
		.length = length,
		.done = done,
		.owner = owner};
	helpers_submit(store_helpers(store), &opening->lane, &opening->job);
	return opening;
}

struct body_source *object_opening_take(struct object_opening *opening, struct error *err)
{
	struct body_source *const source = opening->source;
	ASSERT(source != NULL || opening->error.kind != ERROR_NONE);
	opening->source = NULL;
	if (source == NULL)
		*err = opening->error;
	return source;
}

void object_opening_free(struct object_opening *opening)
{
	if (opening == NULL)
		return;
	if (opening->source != NULL)
		opening->source->close(opening->source);
	free(opening);
}

static void object_opening_run(struct helper_job *job)
{
	struct object_opening *const opening = (struct object_opening *)job;
	struct object_view *const view = object_view_new(opening->store, &opening->error);
	if (view != NULL)
		opening->source = object_view_open_told(view, &opening->object, opening->offset,
			opening->length, &opening->error);
	object_view_free(view);
	opening->done(opening->owner); /* may free `opening` */
}
