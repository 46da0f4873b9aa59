/* base/little_endian.h, under the name it had. */
#include "base/little_endian.h"
