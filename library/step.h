/* What a struct deltabucket_step is made of. */
#ifndef LIBRARY_STEP_H
#define LIBRARY_STEP_H

#include "client/follow/held_step.h"
#include "library/deltabucket.h"

/* Takes over `held`. */
struct deltabucket_step *library_step_new(struct held_step *held);

#endif
