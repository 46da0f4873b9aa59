#include "library/watch.h"

#include <stdlib.h>

#include "base/memory.h"
#include "library/sized.h"

enum { PROGRESS_PAUSE_MS = 250 };

static void watch_show(void *owner, const struct progress_facts *facts);
static void watch_tell(void *owner, const char *sentence, bool is_warning);

struct deltabucket_watch *deltabucket_watch_new(const struct deltabucket_watch_settings *settings)
{
	struct deltabucket_watch *const watch = memory_new(sizeof(*watch));
	struct error ignored = {0};
	if (settings != NULL)
		sized_take(&watch->settings, sizeof(watch->settings), settings,
			"deltabucket_watch_settings", &ignored);
	watch->stop = stop_new();
	watch->sink = (struct progress_sink){
		.show = watch_show, .owner = watch, .pause_ms = PROGRESS_PAUSE_MS};
	return watch;
}

void deltabucket_watch_cancel(struct deltabucket_watch *watch)
{
	stop_give(watch->stop, STOP_CANCELLED);
}

void deltabucket_watch_free(struct deltabucket_watch *watch)
{
	if (watch == NULL)
		return;
	stop_free(watch->stop);
	free(watch);
}

struct stop *library_watch_stop(const struct deltabucket_watch *watch)
{
	return watch == NULL ? NULL : watch->stop;
}

const struct progress_sink *library_watch_sink(const struct deltabucket_watch *watch)
{
	return watch == NULL || watch->settings.progress == NULL ? NULL : &watch->sink;
}

struct output library_watch_output(struct deltabucket_watch *watch)
{
	return (struct output){.told = watch_tell, .owner = watch};
}

static void watch_show(void *owner, const struct progress_facts *facts)
{
	const struct deltabucket_watch *const watch = owner;
	watch->settings.progress(watch->settings.owner, facts->what, facts->done, facts->total);
}

static void watch_tell(void *owner, const char *sentence, bool is_warning)
{
	const struct deltabucket_watch *const watch = owner;
	if (watch == NULL)
		return;
	if (is_warning && watch->settings.warn != NULL)
		watch->settings.warn(watch->settings.owner, sentence);
	else if (watch->settings.note != NULL)
		watch->settings.note(watch->settings.owner, sentence);
}
