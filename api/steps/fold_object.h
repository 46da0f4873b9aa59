/* GET and HEAD /v1/runs/{bucket}/{run}/folds/{from}-{to}/objects/{name}: the bytes of a fold.
 * Answers of GET path name these URLs. */
#ifndef API_STEPS_FOLD_OBJECT_H
#define API_STEPS_FOLD_OBJECT_H

#include "api/exchange/exchange.h"

enum next fold_object_begin(struct exchange *exchange);

#endif
