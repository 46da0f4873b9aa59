/* The tensors that a caller describes, in any order, as a schema. */
#ifndef LIBRARY_TENSORS_H
#define LIBRARY_TENSORS_H

#include "library/deltabucket.h"
#include "weights/model/schema.h"

/* The caller frees the schema, and *out_places: for each tensor of the schema its index among
 * `tensors`. Fails with invalid, and the tensor's name. Whether there is data is not looked at. */
struct schema *library_schema(const struct deltabucket_tensor *tensors, size_t count,
	size_t **out_places, struct error *err);

#endif
