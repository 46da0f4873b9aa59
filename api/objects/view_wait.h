/* Objects of views that are not made yet (docs/protocol/steps.md, "Views"), for all faces: a
 * request for one waits until it exists. Listings name them in a header; those of the Hub's face
 * wait before that. */
#ifndef API_OBJECTS_VIEW_WAIT_H
#define API_OBJECTS_VIEW_WAIT_H

#include "api/objects/anchor_wait.h"

/* For a key without an object: whether it belongs to a view that is not made yet. Returns 1 with
 * wait->anchor set for anchor_wait_for, 0, or -1. After 0 with wait->anchor.is_view the caller must
 * look for the object again, because it may have been made meanwhile. */
int view_wait_look(
	struct anchor_wait *wait, struct bucket_ref bucket, struct span key, struct error *err);

enum { VIEW_WAIT_KEYS_MAX = 16 };
/* The wait of a listing for the views that were still to be made when it began. Later ones do not
 * prolong it, and it ends without an error: what is not made then, view_wait_tell names. */
struct view_wait_list { /* in the exchange's state */
	struct anchor_wait wait;
	struct bucket_ref bucket;
	struct span keys[VIEW_WAIT_KEYS_MAX]; /* the caller may remove some before it waits */
	size_t count;
	size_t made; /* so many first keys need no wait any more */
};
/* Finds the keys to wait for among those that begin with `prefix`. Returns 0, or -1 when the
 * catalog cannot be read. */
int view_wait_list_begin(struct view_wait_list *list, struct exchange *exchange,
	struct bucket_ref bucket, struct span prefix, struct error *err);
/* 1: the exchange waits, and `resume` must call this again. 0: the listing can be made. -1: the
 * catalog cannot be read. */
int view_wait_list_next(struct view_wait_list *list, struct error *err);

/* Adds the header `x-deltabucket-pending` to a listing of keys that begin with `prefix`: up to 16
 * keys of views that are not made yet, separated by commas, which names of runs do not contain.
 * Adds nothing when there are none. Returns 0, or -1 when the catalog cannot be read. */
int view_wait_tell(
	struct exchange *exchange, struct bucket_ref bucket, struct span prefix, struct error *err);

#endif
