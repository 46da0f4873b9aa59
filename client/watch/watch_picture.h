/* The picture of a run and its workers that `deltabucket watch` shows: lines of plain ASCII, cut to
 * a width and a height. */
#ifndef CLIENT_WATCH_WATCH_PICTURE_H
#define CLIENT_WATCH_WATCH_PICTURE_H

#include "client/watch/watch_model.h"

enum { WATCH_FILTER_BYTES = 64, WATCH_WIDTH_MIN = 20, WATCH_WIDTH_MAX = 1000 };

enum watch_order { WATCH_BY_LAG, WATCH_BY_STATE, WATCH_BY_NAME };

struct watch_view {
	const char *run; /* "bucket/run" */
	size_t width;
	size_t height; /* lines; 0: as many as there are */
	size_t rows;   /* workers at most; 0: as many as fit */
	bool colours;
	int64_t now_ms;
	enum watch_order order;
	char filter[WATCH_FILTER_BYTES]; /* part of an id, a state or an error; empty: all */
	bool is_typing;                  /* the filter */
	const char *trouble;             /* why there is nothing newer; NULL: there is */
	const char *const *events;       /* the newest last; shown below the workers */
	size_t event_count;
	bool has_keys; /* the last line names them */
};

/* Adds the lines, each ended by `end`. */
void watch_picture_draw(const struct watch_view *view, const struct watch_model *model,
	const char *end, struct buffer *out);

/* Puts the workers that fit the filter into `out`, which has room for all, the first in the view's
 * order first. Returns their number. */
size_t watch_picture_choose(const struct watch_view *view, const struct watch_fleet *fleet,
	const struct watch_worker **out);

/* "12 s", "3 min", "5 h", "2 d". */
enum { WATCH_AGE_BYTES = 24 };
void watch_picture_format_age(int64_t ms, char out[WATCH_AGE_BYTES]);
/* A worker in a row of a table; cells of what is not known are empty, and a step is "-". */
struct watch_cells {
	const char *state;
	char step[24];
	char behind[48];
	char paused[32];
	char age[WATCH_AGE_BYTES]; /* of its last report */
};
void watch_picture_format_cells(
	const struct watch_worker *worker, int64_t now_ms, struct watch_cells *out);
/* Puts '?' in place of what a terminal may not be given. */
void watch_picture_clean(char *text);

#endif
